/** Options of this mode. */

import { nextTurn } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";

/** What a configuration decides; `configuredOptions` makes it. */
interface ConfiguredOptions {
  /** Name of the HCN network that the pods are on (winkernel.networkName). */
  readonly networkName: string;
  /** On an overlay, the address that packets to pods leave from (winkernel.sourceVip). Default "". */
  readonly sourceVip: string;
  /** Endpoints answer the clients of ClusterIPs directly (winkernel.enableDSR). Default false. */
  readonly enableDSR: boolean;
  /** Probes of load-balancer addresses are led to the node (winkernel.forwardHealthCheckVip). Default false. */
  readonly forwardHealthCheckVip: boolean;
  /** The endpoint that stands for the node itself (winkernel.rootHnsEndpointName). Default cbr0. */
  readonly rootHnsEndpointName: string;
  /** The port of healthz, which answers probes of services without a health-check port. Default: none. */
  readonly healthzPort?: number | undefined;
}

/** What may be chosen when the backend is made; what is not, has kube-proxy's default. */
export interface WindowsOptions extends Partial<Omit<ConfiguredOptions, "networkName">> {
  /** The family of the plans that it is given. Default IPv4. */
  readonly family?: IPFamily;
  /** Name of the HCN network that the pods are on. */
  readonly networkName: string;
  /**
   * The node's address and the MAC address of its interface, which an overlay needs; asked at each full sync. Default:
   * not known, and an overlay cannot be served.
   */
  readonly nodeAddress?: () => Promise<NodeAddress | undefined>;
  /** Gives the event loop its turn, every few milliseconds of rendering. Default `nextTurn`. */
  readonly turn?: () => Promise<void>;
  /** Called with what does not stop the sync but an operator should know. */
  readonly onProblem?: (problem: string) => void;
}

/** Where other nodes reach this one. */
export interface NodeAddress {
  /** Canonical. */
  readonly address: string;
  /** `02:00:00:00:02:01` */
  readonly mac: string;
}

/** The options with every default filled in. */
export type ResolvedOptions = Required<Omit<WindowsOptions, "healthzPort">> & Pick<WindowsOptions, "healthzPort">;

/** The part of an agent's configuration (`AgentConfig` of @fairlead/config) that this mode reads. */
interface Configuration {
  readonly kernelspace: Omit<ConfiguredOptions, "healthzPort">;
  readonly healthzBindAddress?: { readonly port: number };
}

/** The options for a configuration: the same in the agent, which programs the node, and in the tools. */
export function configuredOptions({ kernelspace, healthzBindAddress }: Configuration): ConfiguredOptions {
  const { networkName, sourceVip, enableDSR, forwardHealthCheckVip, rootHnsEndpointName } = kernelspace;
  const healthzPort = healthzBindAddress?.port;
  return { networkName, sourceVip, enableDSR, forwardHealthCheckVip, rootHnsEndpointName, healthzPort };
}

const DEFAULTS = {
  family: "IPv4",
  sourceVip: "",
  enableDSR: false,
  forwardHealthCheckVip: false,
  rootHnsEndpointName: "cbr0",
  nodeAddress: async () => undefined,
  turn: nextTurn,
  onProblem: () => {},
} as const satisfies Omit<ResolvedOptions, "networkName" | "healthzPort">;

/** @throws RangeError when the network has no name */
export function resolveOptions(options: WindowsOptions): ResolvedOptions {
  if (options.networkName === "") {
    throw new RangeError("networkName is empty; it must be the name of the HCN network that the pods are on");
  }
  return { ...DEFAULTS, ...options };
}
