import type { NetworkNamespace } from "@fairlead/kernel/netns";
import type { Mode } from "@fairlead/lab/modes";
import { isThere } from "@fairlead/lab/support/machine";
import {
  clusterObjects,
  endpointSlice,
  type Host,
  NETWORKS,
  NODE_A,
  nginxCalico,
  ovnA,
  ovnB,
  type RawObject,
  SECOND_NODE_ADDRESS,
  service,
  webA1,
  webA2,
  webB1,
} from "@fairlead/testkit";

export interface Ask {
  readonly from: Host;
  readonly to: string;
  readonly port: number;
  readonly count: number;
  /** Default: the sender's own address. */
  readonly source?: string;
}

export interface Reply {
  /** When it was known, in milliseconds since the epoch. */
  readonly at: number;
  /** Name of the pod that answered; `untouched`: it arrived as it was sent, where no pod is. */
  readonly end: string;
  /** The sender that the pod saw. */
  readonly seenAs?: string;
}

/** One line of the table. */
export interface Finding {
  readonly name: string;
  readonly request: string;
  readonly seen: string;
  readonly ok: boolean;
}

export type Check = (stage: DemoEnvironment) => Promise<readonly Finding[]>;

/** Where the demo plays: the real kernel, one in memory, or local ports. */
export interface DemoEnvironment {
  /** What it is, in words. */
  readonly ground: string;
  readonly real: boolean;
  /** Where the node serves node ports, of its two addresses and 127.0.0.1. */
  readonly nodePortsAt: readonly string[];
  /** How it proves what it shows, for the closing line. */
  readonly proof: string;
  /** What can be seen there; default: all checks. */
  readonly checks?: readonly Check[];
  /** How long a change may take, in milliseconds, before it counts as never followed. */
  readonly patienceMs: number;
  /** Puts these objects in place of those before. Gives the moment, in milliseconds since the epoch. */
  change(objects: readonly RawObject[]): Promise<number>;
  ask(ask: Ask): Promise<readonly Reply[]>;
  rules(): Promise<readonly string[]>;
  /** The folder of manifests that the agent follows; absent: there is none. */
  readonly manifests?: string;
  /** The node that has the rules; absent: there is none, or no kernel. */
  readonly node?: { readonly namespace: NetworkNamespace; readonly mode: string };
  /** How to look around in it while it is there; nothing where there is nothing to enter. */
  readonly tour: readonly string[];
  /** Ends it. Gives what was left behind: nothing, if all is well. */
  close(): Promise<readonly string[]>;
}

/** Of these processes and this folder, what is still there. */
export async function leftovers(pids: readonly number[], folder: string): Promise<readonly string[]> {
  const processes = pids.filter(isRunning).map((pid) => `process ${pid}`);
  return [...processes, ...((await isThere(folder)) ? [folder] : [])];
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** The founding case's two services: one of this proxy's network, one of the other. */
export const NGINX_CALICO_IP = "10.96.67.75";
export const NGINX_OVN_IP = "10.96.95.98";

export const WEB = { clusterIP: "10.96.10.10", nodePort: 30_080 } as const;
export const STICKY_IP = "10.96.10.11";
export const NO_ENDPOINTS_IP = "10.96.10.12";

export const webPods: readonly Host[] = [webA1, webA2, webB1];

export function demoObjects(serving: readonly Host[] = webPods): readonly RawObject[] {
  return [
    ...clusterObjects,
    ...served("nginx-calico", NGINX_CALICO_IP, [nginxCalico], 80),
    ...served("nginx-ovn", NGINX_OVN_IP, [ovnA, ovnB], 8080),
    ...served("web", WEB.clusterIP, serving, 8080, { type: "NodePort", nodePort: WEB.nodePort }),
    ...served("sticky", STICKY_IP, webPods, 8080, { affinitySeconds: 600 }),
    ...served("no-endpoints", NO_ENDPOINTS_IP, [], 8080),
  ];
}

interface Extra {
  readonly type?: "NodePort";
  readonly nodePort?: number;
  readonly affinitySeconds?: number;
}

function served(name: string, clusterIP: string, hosts: readonly Host[], targetPort: number, extra: Extra = {}) {
  const { nodePort, ...fields } = extra;
  return [
    service(name, {
      clusterIPs: [clusterIP],
      ports: [{ port: 80, targetPort, ...(nodePort !== undefined && { nodePort }) }],
      ...fields,
    }),
    endpointSlice(`${name}-1`, {
      service: name,
      family: "IPv4",
      ports: [{ port: targetPort }],
      endpoints: hosts.map(({ addresses, node }) => ({
        address: addresses.IPv4,
        ...(node !== undefined && { nodeName: node }),
      })),
    }),
  ];
}

/** The node's addresses, by how much a mode serves of them. */
export const NODE_PORTS_AT: Readonly<Record<Mode["nodePorts"], readonly string[]>> = {
  primary: [NODE_A.addresses.IPv4],
  all: [NODE_A.addresses.IPv4, SECOND_NODE_ADDRESS.IPv4],
  "all, and 127.0.0.1": [NODE_A.addresses.IPv4, SECOND_NODE_ADDRESS.IPv4, "127.0.0.1"],
};

/** The console's flags for these networks. */
export const CONSOLE_FLAGS: readonly string[] = [
  `--cluster-cidr=${NETWORKS.calico.IPv4},${NETWORKS.calico.IPv6}`,
  `--exclude-cluster-cidr=${NETWORKS.ovn.IPv4}`,
];

/** The agent's, alongside the mode and the paths. */
export const DEMO_FLAGS: readonly string[] = [...CONSOLE_FLAGS, "--hostname-override=node-a"];

/** The same without a rule. */
export const LOCAL_FLAGS: readonly string[] = [
  "--proxy-mode=userspace",
  "--userspace-only",
  `--exclude-cluster-cidr=${NETWORKS.ovn.IPv4}`,
];

const SERVICE_NAMES: Readonly<Record<string, string>> = {
  [NGINX_CALICO_IP]: "nginx-calico",
  [NGINX_OVN_IP]: "nginx-ovn",
  [WEB.clusterIP]: "web",
  [STICKY_IP]: "sticky",
  [NO_ENDPOINTS_IP]: "no-endpoints",
};

export function serviceAt(clusterIP: string): string | undefined {
  return SERVICE_NAMES[clusterIP];
}
