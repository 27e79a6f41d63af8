import { join } from "node:path";
import type { IPFamily } from "@fairlead/core";
import { PLAIN_TOOL } from "../../support/machine.ts";
import { START_MS, waitUntil } from "../../support/wait-until.ts";
import { ANYWHERE, address, applyLines, route, up, veth } from "../../wire.ts";
import {
  type CniFlavor,
  type CniGround,
  type CniNode,
  FIRST_POD,
  type PodAddresses,
  type PodNetwork,
  type PodToAttach,
} from "../flavor.ts";
import { createBalancers } from "./controller/balancers.ts";
import {
  mac,
  nodeFolder,
  type OvnClients,
  openClients,
  startCentral,
  startController,
  startServiceController,
  startSwitch,
  subnets,
} from "./daemons.ts";
import { addressSwitch, INTEGRATION, MTU, setUpSwitch, switchOf, topology } from "./switch.ts";

/**
 * What pods send to others than pods gets the node's address: `natOutgoing: true` of a Subnet. Without this rule, of
 * table nat, they keep their own.
 */
export const NAT_OUTGOING = ["CNI-OVN", "-j", "MASQUERADE"] as const;

/** OVN with Open vSwitch's userspace datapath, as kube-ovn lays it out. */
export const flavor: CniFlavor = {
  name: "ovn",
  programs: [
    { program: "ovsdb-server", debian: "openvswitch-common" },
    { program: "ovs-vswitchd", debian: "openvswitch-switch" },
    { program: "ovn-northd", debian: "ovn-central" },
    { program: "ovn-controller", debian: "ovn-host" },
    { program: "ethtool", debian: "ethtool" },
  ],
  // The userspace datapath has a tap device for each port of the node's own.
  devices: ["/dev/net/tun"],
  podCIDRs: subnets.podCIDRs,
  ownLoadBalancer: true,
  hidesCallers: true,
  mtu: MTU,
  install,
};

/** A port on the node's bridge, and a logical one of the same name; resolves when every node has the flows for it. */
export async function attach(
  clients: OvnClients,
  pod: PodToAttach,
  families: readonly IPFamily[],
): Promise<PodAddresses> {
  const { name, node, index, namespace, runner } = pod;
  const host = hostSide(name);
  const own = mac(3, node.index, FIRST_POD + index);
  const ips = families.map((family) => [family, subnets.pod(family, node.index, index)] as const);
  await applyLines(node.runner, [veth(host, "eth0", namespace.pid), `link set ${host} mtu ${MTU}`, up(host)]);
  await applyLines(runner, [
    `link set eth0 mtu ${MTU} address ${own}`,
    up("eth0"),
    ...ips.flatMap(([family, ip]) => [
      address("eth0", `${ip}/${subnets.length[family]}`),
      route(ANYWHERE[family], { via: subnets.address(family, node.index, 1) }),
    ]),
  ]);
  // The userspace datapath takes packets as they are: nothing behind it fills in checksums or cuts what is too long.
  await runner.run(["ethtool", "-K", "eth0", "tx", "off"]);
  const iface = ["set", "interface", host, `external_ids:iface-id=${name}`];
  await clients.vswitch(node, "add-port", INTEGRATION, host, "--", ...iface);
  const addresses = [own, ...ips.map(([, ip]) => ip)].join(" ");
  await clients.northbound([
    ["lsp-add", switchOf(node.index), name],
    ["lsp-set-addresses", name, addresses],
    ["lsp-set-port-security", name, addresses],
  ]);
  await clients.northbound([["wait-until", "logical_switch_port", name, "up=true"]]);
  await clients.northbound([["sync"]], "hv");
  return Object.fromEntries(ips);
}

export async function detach(clients: OvnClients, { name, node }: PodToAttach): Promise<void> {
  await clients.northbound([["--if-exists", "lsp-del", name]]);
  await clients.vswitch(node, "--if-exists", "del-port", INTEGRATION, hostSide(name));
  await node.runner.run(["ip", "link", "delete", hostSide(name)]);
}

/** What OVN and the switches know. */
export async function ovnState(
  clients: OvnClients,
  { nodes, folder }: CniGround,
): Promise<Readonly<Record<string, string>>> {
  const files = await Promise.all([...central(clients), ...nodes.flatMap((node) => onNode(clients, node, folder))]);
  return Object.fromEntries(files);
}

/**
 * What kube-ovn's daemon writes on a node for its pods (pkg/daemon/gateway_linux.go, setIptables), where it comes
 * before the proxy. What the node sends on from pod to pod, which is what a service proxied by the node makes of it,
 * gets the node's address: the answer would go straight through OVN, past the node that has to translate it back.
 */
export async function masquerade({ runner }: CniNode, family: IPFamily): Promise<void> {
  const pods = subnets.podCIDRs[family];
  const [chain] = NAT_OUTGOING;
  await runner.run([`${PLAIN_TOOL[family]}-restore`, "--noflush"], {
    input: [
      "*nat",
      `:${chain} - [0:0]`,
      `-A ${chain} -d ${pods} -j MASQUERADE`,
      // Of a connection that began past this node.
      `-A ${chain} -p tcp ! --syn -m conntrack --ctstate NEW -j RETURN`,
      `-A ${NAT_OUTGOING.join(" ")}`,
      `-A POSTROUTING -s ${pods} -j ${chain}`,
      "COMMIT",
      "*filter",
      `-A FORWARD -s ${pods} -j ACCEPT`,
      `-A FORWARD -d ${pods} -j ACCEPT`,
      "COMMIT\n",
    ].join("\n"),
  });
}

async function install(ground: CniGround): Promise<PodNetwork> {
  const { nodes, families } = ground;
  const [central] = nodes;
  if (central === undefined) throw new Error("OVN needs a node for its databases");
  const clients = openClients(ground.folder, central);
  await Promise.all([
    startCentral(ground, central).then(() => clients.northbound(topology(nodes, families))),
    ...nodes.map((node) => setUpNode(ground, clients, node, central)),
  ]);
  return {
    attach: (pod) => attach(clients, pod, families),
    detach: (pod) => detach(clients, pod),
    ready: () => ready(clients, nodes),
    state: () => ovnState(clients, ground),
    followServices: async (kubeconfig) => {
      await clients.northbound(createBalancers(nodes.map(({ index }) => switchOf(index))));
      await startServiceController(ground, central, kubeconfig);
    },
    dispose: async () => {},
  };
}

async function setUpNode(ground: CniGround, clients: OvnClients, node: CniNode, central: CniNode): Promise<void> {
  await startSwitch(ground, node);
  await setUpSwitch(clients, node, central);
  await addressSwitch(node, ground.families);
  for (const family of ground.families) await masquerade(node, family);
  await startController(ground, node);
}

/** Every node has come up in OVN, with its own port, and has the flows of all. */
async function ready({ northbound, southbound }: OvnClients, nodes: readonly CniNode[]): Promise<void> {
  await waitUntil("every node in OVN", START_MS, async () => {
    const names = (await southbound("--bare", "--columns=hostname", "list", "chassis")).split("\n");
    return nodes.every(({ name }) => names.includes(name)) ? true : undefined;
  });
  await northbound([["sync"]], "hv");
}

function hostSide(pod: string): string {
  return `ov-${pod}`;
}

type File = readonly [name: string, text: string];

function central({ northbound, southbound }: OvnClients): readonly Promise<File>[] {
  return [
    named("northbound.txt", northbound([["show"]])),
    named("load-balancers.txt", northbound([["lb-list"]])),
    named("router-policies.txt", northbound([["lr-policy-list", "fairlead-router"]])),
    named("southbound.txt", southbound("show")),
    named("logical-flows.txt", southbound("lflow-list")),
  ];
}

function onNode({ vswitch }: OvnClients, node: CniNode, folder: string): readonly Promise<File>[] {
  const own = join(nodeFolder(folder, node), "vswitchd.ctl");
  const ask = async (...words: string[]) => (await node.runner.run(["ovs-appctl", "-t", own, ...words])).stdout;
  return [
    named(`${node.name}-switch.txt`, vswitch(node, "show")),
    named(`${node.name}-datapath-flows.txt`, ask("dpctl/dump-flows", "netdev@ovs-netdev")),
    named(`${node.name}-datapath-conntrack.txt`, ask("dpctl/dump-conntrack", "netdev@ovs-netdev")),
    named(`${node.name}-tunnel-routes.txt`, ask("ovs/route/show")),
    named(`${node.name}-tunnel-neighbors.txt`, ask("tnl/neigh/show")),
  ];
}

async function named(name: string, text: Promise<string>): Promise<File> {
  return [name, await text.catch((error: unknown) => String(error))];
}
