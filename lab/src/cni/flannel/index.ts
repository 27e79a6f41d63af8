import type { IPFamily } from "@fairlead/core";
import { bridgePlugin } from "../bridge-plugin.ts";
import type { CniFlavor, CniGround, CniNode, PodNetwork } from "../flavor.ts";
import { routeToOthers } from "../node-routes.ts";
import { subnets } from "./addresses.ts";
import { masquerade } from "./masquerade.ts";
import { setUpVxlan, TUNNEL_MTU, vxlanState } from "./vxlan.ts";

/** How packets come to another node. */
interface Backend {
  readonly mtu: (families: readonly IPFamily[]) => number;
  readonly setUp: (node: CniNode, others: readonly CniNode[], family: IPFamily) => Promise<void>;
  readonly state: (node: CniNode) => Promise<readonly (readonly [string, string])[]>;
}

const vxlan: Backend = {
  // The families share one bridge.
  mtu: (families) => Math.min(...families.map((family) => TUNNEL_MTU[family])),
  setUp: setUpVxlan,
  state: vxlanState,
};
const hostGateway: Backend = {
  mtu: () => 1500,
  setUp: (node, others, family) => routeToOthers(node, others, family, subnets),
  state: async () => [],
};

/** A bridge on every node and a tunnel between the nodes: flannel's vxlan backend. */
export const flavor: CniFlavor = {
  name: "flannel",
  programs: [{ program: "bridge", debian: "iproute2" }],
  podCIDRs: subnets.podCIDRs,
  ownLoadBalancer: false,
  mtu: TUNNEL_MTU.IPv6,
  install: (ground) => install(ground, vxlan),
};

/** `flannel:host-gw`: a bridge on every node and routes between the nodes. */
export const variants: Readonly<Record<string, CniFlavor>> = {
  "host-gw": { ...flavor, mtu: 1500, install: (ground) => install(ground, hostGateway) },
};

async function install({ nodes, families }: CniGround, backend: Backend): Promise<PodNetwork> {
  const fields = { bridge: "cni0", macPrefix: "0a:58:0a:2a:01", linkPrefix: "fl", mtu: backend.mtu(families) };
  const { setUp, attach, detach } = bridgePlugin({ ...fields, families, subnets });
  const setUpNode = async (node: CniNode) => {
    const others = nodes.filter((other) => other !== node);
    await setUp(node);
    for (const family of families) {
      await backend.setUp(node, others, family);
      await masquerade(node, family);
    }
  };
  await Promise.all(nodes.map(setUpNode));
  return {
    attach,
    detach,
    // The kernel has all of it at once.
    ready: async () => {},
    state: async () => Object.fromEntries((await Promise.all(nodes.map(backend.state))).flat()),
    dispose: async () => {},
  };
}
