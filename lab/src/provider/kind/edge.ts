import type { IPFamily } from "@fairlead/core";
import { createNamespace, type NetworkNamespace } from "@fairlead/kernel/netns";
import { applyLines, applySettings, runnerIn } from "../../wire/apply.ts";
import { host, NODE_SETTINGS, routeFromOutside, router } from "../netns/ground.ts";
import { edgeLines, outsideLines } from "../netns/wiring.ts";
import type { KindNode } from "./kind-cluster.ts";
import type { Machine } from "./machine.ts";

/** Wires an outside to the bridge that the nodes are on, as in a cluster of namespaces. */
export async function openOutside(
  { network }: Machine,
  { all, workers }: { readonly all: readonly KindNode[]; readonly workers: readonly KindNode[] },
  families: readonly IPFamily[],
  opened: AsyncDisposableStack,
): Promise<NetworkNamespace> {
  const outside = opened.use(await createNamespace());
  await Promise.all([
    applySettings(network.runner, router),
    applySettings(runnerIn(outside), host),
    ...all.map((node) => applySettings(node.runner, { ...router, ...NODE_SETTINGS })),
  ]);
  const addresses = workers.map((node) => node.addresses);
  await applyLines(network.runner, edgeLines({ families, nodes: addresses, outsidePid: outside.pid }));
  await routeFromOutside(network.runner, families);
  await applyLines(runnerIn(outside), outsideLines(families));
  return outside;
}
