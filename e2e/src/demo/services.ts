import {
  clusterObjects,
  endpointSlice,
  type Host,
  networks,
  nginxCalico,
  nodeA,
  ovnA,
  ovnB,
  type RawObject,
  secondNodeAddress,
  service,
  webA1,
  webA2,
  webB1,
} from "@fairlead/testkit";
import type { Mode } from "../modes/mode.ts";

/** The founding case's two services: one of this proxy's network, one of the other. */
export const nginxCalicoIP = "10.96.67.75";
export const nginxOvnIP = "10.96.95.98";

export const web = { clusterIP: "10.96.10.10", nodePort: 30_080 } as const;
export const stickyIP = "10.96.10.11";
export const nobodyIP = "10.96.10.12";

export const webPods: readonly Host[] = [webA1, webA2, webB1];

/** @param serving the endpoints of `web` */
export function demoObjects(serving: readonly Host[] = webPods): readonly RawObject[] {
  return [
    ...clusterObjects,
    ...served("nginx-calico", nginxCalicoIP, [nginxCalico], 80),
    ...served("nginx-ovn", nginxOvnIP, [ovnA, ovnB], 8080),
    ...served("web", web.clusterIP, serving, 8080, { type: "NodePort", nodePort: web.nodePort }),
    ...served("sticky", stickyIP, webPods, 8080, { affinitySeconds: 600 }),
    ...served("nobody", nobodyIP, [], 8080),
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
export const nodePortsAt: Readonly<Record<Mode["nodePorts"], readonly string[]>> = {
  primary: [nodeA.addresses.IPv4],
  all: [nodeA.addresses.IPv4, secondNodeAddress.IPv4],
  "all, and 127.0.0.1": [nodeA.addresses.IPv4, secondNodeAddress.IPv4, "127.0.0.1"],
};

/** The agent's flags for these networks, beside the mode and the paths. */
export const demoFlags: readonly string[] = [
  `--cluster-cidr=${networks.calico.IPv4},${networks.calico.IPv6}`,
  `--exclude-cluster-cidr=${networks.ovn.IPv4}`,
  "--hostname-override=node-a",
];

/** The same for the console, which looks at the objects. */
export const consoleFlags: readonly string[] = [
  `--cluster-cidr=${networks.calico.IPv4},${networks.calico.IPv6}`,
  `--exclude-cluster-cidr=${networks.ovn.IPv4}`,
];

/** The same without a rule. */
export const localFlags: readonly string[] = [
  "--proxy-mode=userspace",
  "--userspace-only",
  `--exclude-cluster-cidr=${networks.ovn.IPv4}`,
];

const serviceNames: Readonly<Record<string, string>> = {
  [nginxCalicoIP]: "nginx-calico",
  [nginxOvnIP]: "nginx-ovn",
  [web.clusterIP]: "web",
  [stickyIP]: "sticky",
  [nobodyIP]: "nobody",
};

/** Whose cluster IP it is. */
export function serviceAt(clusterIP: string): string | undefined {
  return serviceNames[clusterIP];
}
