import { bridgePlugin } from "../bridge-plugin.ts";
import {
  type CniFlavor,
  type CniGround,
  type CniNode,
  masqueradeOutgoing,
  nodeSubnets,
  type PodNetwork,
  routeToOthers,
} from "../flavor.ts";

const subnets = nodeSubnets("10.143", "fd00:143::");

/** A bridge on every node, routes between the nodes: the CNI plugins bridge and host-local. */
export const flavor: CniFlavor = {
  name: "bridge",
  programs: [{ program: "bridge", debian: "iproute2" }],
  podCIDRs: subnets.podCIDRs,
  ownLoadBalancer: false,
  mtu: 1500,
  install,
};

async function install({ nodes, families }: CniGround): Promise<PodNetwork> {
  const fields = { bridge: "cni-bridge", macPrefix: "0a:58:0a:8f:00", linkPrefix: "br", mtu: 1500 };
  const { setUp, attach, detach } = bridgePlugin({ ...fields, families, subnets });
  const setUpNode = async (node: CniNode) => {
    await setUp(node);
    const others = nodes.filter((other) => other !== node);
    for (const family of families) {
      await routeToOthers(node, others, family, subnets);
      await masqueradeOutgoing(node.runner, family, flavor);
    }
  };
  await Promise.all(nodes.map(setUpNode));
  return {
    attach,
    detach,
    // Routes are there at once.
    ready: async () => {},
    state: async () => ({}),
    dispose: async () => {},
  };
}
