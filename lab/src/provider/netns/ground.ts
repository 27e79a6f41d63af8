import type { IPFamily } from "@fairlead/core";
import type { Runner } from "@fairlead/kernel";
import { createNamespace, type NetworkNamespace } from "@fairlead/kernel/netns";
import { applyLines, applySettings, runnerIn } from "../../wire/apply.ts";
import { ruleForInterface } from "../../wire/ip-lines.ts";
import { kernelSettings } from "../../wire/settings.ts";
import { nodeAddress, nodeName } from "./addresses.ts";
import { FROM_OUTSIDE, fabricFilter, fabricLines, nodeLines, outsideLines, type Wires } from "./wiring.ts";

/** The namespaces of a cluster without its pods, wired. */
export interface Ground {
  readonly families: readonly IPFamily[];
  readonly fabric: NetworkNamespace;
  readonly outside: NetworkNamespace;
  readonly nodes: readonly GroundNode[];
}

export interface GroundNode {
  readonly name: string;
  readonly index: number;
  readonly addresses: Readonly<Partial<Record<IPFamily, string>>>;
  readonly namespace: NetworkNamespace;
  readonly runner: Runner;
}

/** Settings of the lab for those who route, and for those who do not. */
export const router = kernelSettings("fabric");
export const host = kernelSettings("outside");

export const NODE_SETTINGS = {
  // What met nobody is forgotten soon: the next connection from the same port is a new one, and rules are asked again.
  "net/netfilter/nf_conntrack_tcp_timeout_syn_sent": "2",
} as const;

/** @param opened gets what has to be closed */
export async function openGround(
  families: readonly IPFamily[],
  count: number,
  opened: AsyncDisposableStack,
): Promise<Ground> {
  const fabric = opened.use(await createNamespace());
  const beside = async () => opened.use(await createNamespace({ beside: fabric }));
  const outside = await beside();
  const nodes = await Promise.all(
    Array.from({ length: count }, async (_, at) => describeNode(at + 1, families, await beside())),
  );
  const ground = { families, fabric, outside, nodes };
  await wire(ground);
  return ground;
}

function describeNode(index: number, families: readonly IPFamily[], namespace: NetworkNamespace): GroundNode {
  const addresses = Object.fromEntries(families.map((family) => [family, nodeAddress[family](index)]));
  return { name: nodeName(index), index, addresses, namespace, runner: runnerIn(namespace) };
}

async function wire({ families, fabric, outside, nodes }: Ground): Promise<void> {
  const wires: Wires = {
    families,
    nodes: nodes.map(({ name, index, namespace }) => ({ name, index, pid: namespace.pid })),
    outsidePid: outside.pid,
  };
  await Promise.all([
    applySettings(runnerIn(fabric), router),
    applySettings(runnerIn(outside), host),
    ...nodes.map((node) => applySettings(node.runner, { ...router, ...NODE_SETTINGS })),
  ]);
  await wireFabric(runnerIn(fabric), wires);
  await Promise.all([
    ...nodes.map(({ index, runner }) => applyLines(runner, nodeLines(index, families))),
    applyLines(runnerIn(outside), outsideLines(families)),
  ]);
}

async function wireFabric(runner: Runner, wires: Wires): Promise<void> {
  await rejectAtTheEnd(runner, wires.families);
  await applyLines(runner, fabricLines(wires));
  await routeFromOutside(runner, wires.families);
}

/** Before there is any way: what no rule of a node has translated is refused. */
export async function rejectAtTheEnd(runner: Runner, families: readonly IPFamily[]): Promise<void> {
  for (const family of families) {
    const tool = family === "IPv4" ? "iptables-restore" : "ip6tables-restore";
    await runner.run([tool], { input: fabricFilter[family] });
  }
}

export async function routeFromOutside(runner: Runner, families: readonly IPFamily[]): Promise<void> {
  for (const family of families) {
    const flag = family === "IPv4" ? "-4" : "-6";
    await applyLines(runner, [ruleForInterface("outside", FROM_OUTSIDE)], [flag]);
  }
}

/** A namespace for a pod, with the settings of a host. */
export async function podNamespace({ fabric }: Ground): Promise<NetworkNamespace> {
  const namespace = await createNamespace({ beside: fabric });
  await applySettings(runnerIn(namespace), host);
  return namespace;
}
