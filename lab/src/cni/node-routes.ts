import type { IPFamily } from "@fairlead/core";
import { applyLines } from "../wire/apply.ts";
import { route } from "../wire/ip-lines.ts";
import type { CniNode } from "./flavor.ts";
import type { NodeSubnets } from "./node-subnets.ts";

/** Nodes on one link: every other node is the gateway to its subnet, and nothing is wrapped. */
export async function routeToOthers(
  node: CniNode,
  others: readonly CniNode[],
  family: IPFamily,
  { subnet }: NodeSubnets,
): Promise<void> {
  await applyLines(
    node.runner,
    others.flatMap(({ index, addresses }) => {
      const via = addresses[family];
      return via === undefined ? [] : [route(subnet(family, index), { via, dev: "eth0" })];
    }),
  );
}
