import type { IPFamily } from "@fairlead/base";

/** Where a client is; `here` is the node with an endpoint of every service, `there` the other one. */
export const PLACES = ["pod-here", "pod-there", "node-here", "node-there", "outside"] as const;
export type Place = (typeof PLACES)[number];

/** Where servers and clients are. */
export interface TestNode {
  readonly name: string;
  readonly addresses: Readonly<Partial<Record<IPFamily, string>>>;
}

/** A pod that runs. */
export interface TestPod {
  readonly name: string;
  readonly addresses: Readonly<Partial<Record<IPFamily, string>>>;
}

/** A Service as the API server has it. */
export interface TestService {
  readonly name: ServiceName;
  readonly clusterIPs: Readonly<Partial<Record<IPFamily, string>>>;
  readonly port: number;
  readonly nodePort?: number;
  readonly externalIPs: Readonly<Partial<Record<IPFamily, string>>>;
  readonly loadBalancerIPs: Readonly<Partial<Record<IPFamily, string>>>;
}

export type ServiceName =
  | "web"
  | "web-local"
  | "web-internal"
  | "web-sticky"
  | "web-none"
  | "web-headless"
  | "web-hairpin";

/** What the cases are made from. */
export interface Ground {
  readonly namespace: string;
  readonly families: readonly IPFamily[];
  readonly here: TestNode;
  readonly there: TestNode;
  /** Servers: `web-a` is here, `web-b` there. */
  readonly servers: Readonly<Record<"web-a" | "web-b", TestPod>>;
  readonly services: readonly TestService[];
  /** From where is asked. */
  readonly places: readonly Place[];
  /** Whether names are resolved: there is a cluster DNS. */
  readonly dns: boolean;
  /** Whether the outside has routes to the addresses of load balancers and to external IPs. */
  readonly routed: boolean;
}
