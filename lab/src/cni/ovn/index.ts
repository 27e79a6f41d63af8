import { waitUntil } from "../../agent/wait-until.ts";
import type { CniFlavor, CniGround, CniNode, PodNetwork } from "../flavor.ts";
import { subnets } from "./addresses.ts";
import { type OvnClients, openClients } from "./clients.ts";
import { createBalancers } from "./controller/balancers.ts";
import { startCentral, startController, startServiceController, startSwitch } from "./daemons.ts";
import { masquerade } from "./masquerade.ts";
import { attach, detach } from "./pod.ts";
import { ovnState } from "./state.ts";
import { addressSwitch, MTU, setUpSwitch } from "./switch.ts";
import { switchOf, topology } from "./topology.ts";

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

const READY_MS = 180_000;

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
  await waitUntil("every node in OVN", READY_MS, async () => {
    const names = (await southbound("--bare", "--columns=hostname", "list", "chassis")).split("\n");
    return nodes.every(({ name }) => names.includes(name)) ? true : undefined;
  });
  await northbound([["sync"]], "hv");
}
