import { familyOf } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import { BRIDGED_IS_SEEN } from "../../../cni/bridge-plugin.ts";
import { masqueradeOutgoing } from "../../../cni/node-subnets.ts";
import { applyLines, applySettings, type IpLines, route } from "../../../wire.ts";
import type { KindNode } from "../kind-cluster.ts";
import { HOST_PORTS, type KindNetwork, type KindNetworkGround, writeConfig } from "./network.ts";

/** The CNI plugins bridge and host-local on every node's part of the pod CIDRs, and routes between the nodes. */
export async function bridge(ground: KindNetworkGround): Promise<KindNetwork> {
  const { cluster, families, flavor, configFolder } = ground;
  const parts = await podCIDRs(ground);
  for (const node of cluster.nodes) {
    const others = cluster.nodes.filter((other) => other !== node);
    await applySettings(node.runner, BRIDGED_IS_SEEN);
    await applyLines(
      node.runner,
      others.flatMap((other) => routesTo(other, families, parts)),
    );
    // Who refuses what leaves the pod network has no way to pods.
    for (const family of families) await masqueradeOutgoing(node.runner, family, flavor);
    const ranges = families.map((family) => [{ subnet: parts(node, family) }]);
    await writeConfig(node, configFolder, "bridge", {
      cniVersion: "1.0.0",
      name: "bridge",
      plugins: [
        {
          type: "bridge",
          bridge: "cni0",
          isDefaultGateway: true,
          hairpinMode: true,
          ipam: { type: "host-local", ranges },
        },
        HOST_PORTS,
      ],
    });
  }
  return { state: async () => ({}) };
}

type Parts = (node: KindNode, family: IPFamily) => string;

function routesTo(other: KindNode, families: readonly IPFamily[], parts: Parts): IpLines {
  return families.map((family) => route(parts(other, family), { via: other.addresses[family] ?? "" }));
}

/** As the controller manager has divided them among the nodes. */
async function podCIDRs({ cluster }: KindNetworkGround): Promise<Parts> {
  const { stdout } = await cluster.kubectl(["get", "nodes", "-o", "json"]);
  const { items }: NodeList = JSON.parse(stdout);
  return ({ name }, family) => {
    const cidrs = items.find(({ metadata }) => metadata.name === name)?.spec.podCIDRs ?? [];
    const found = cidrs.find((cidr) => familyOf(cidr) === family);
    if (found === undefined) throw new Error(`${name} has no part of the ${family} pod CIDR`);
    return found;
  };
}

interface NodeList {
  readonly items: readonly {
    readonly metadata: { readonly name: string };
    readonly spec: { readonly podCIDRs?: readonly string[] };
  }[];
}
