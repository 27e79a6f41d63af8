import type { ServiceReport } from "@fairlead/inspect";
import { modeNamed } from "@fairlead/lab/modes";
import type { ClusterNode } from "@fairlead/lab/provider/cluster";
import type { Tool } from "../operator.ts";
import type { Scene } from "../spec.ts";
import { DAMAGES } from "./model.ts";

/** The rules of every node in both families, as a set of lines. */
type RulesSeen = ReadonlyMap<string, ReadonlySet<string>>;

export async function readRules({ cluster }: Scene, mode: string): Promise<RulesSeen> {
  const { listings, linesOf } = modeNamed(mode).rules;
  const onNode = async ({ name, run }: ClusterNode) => {
    const listed = await Promise.all(listings.map((argv) => run(argv)));
    const lines = listed.flatMap(({ stdout }, at) => linesOf(stdout).map((line) => `${listings[at]?.[0]} ${line}`));
    return [name, new Set(lines)] as const;
  };
  return new Map(await Promise.all(cluster.nodes.map(onNode)));
}

/** @throws Error with what only one of them has */
export function expectSameRules(before: RulesSeen, now: RulesSeen): void {
  const differing = [...before].flatMap(([node, lines]) => {
    const there = now.get(node) ?? new Set<string>();
    const gone = [...lines].filter((line) => !there.has(line)).map((line) => `${node} - ${line}`);
    return [...gone, ...[...there].filter((line) => !lines.has(line)).map((line) => `${node} + ${line}`)];
  });
  if (differing.length > 0) throw new Error(`a fresh start has other rules:\n${differing.join("\n")}`);
}

/**
 * The comparison must be able to fail: what is damaged while the agent cannot repair it has to be found.
 *
 * @throws Error when nothing is found
 */
export async function expectDamageFound({ nodes, family }: Scene, mode: string, tool: Tool): Promise<void> {
  const [node] = nodes;
  const { byHand } = modeNamed(mode);
  if (byHand === undefined) throw new Error(`nobody knows what to break in ${mode} mode`);
  await node.agent.signal("SIGSTOP");
  try {
    for (const what of DAMAGES) {
      await node.run(byHand[what](family));
      const found = findingsIn(await tool(node, mode, "verify", "-o", "json"));
      if (found.length === 0) throw new Error(`verify finds nothing although ${what} was done in ${mode} mode`);
    }
  } finally {
    await node.agent.signal("SIGCONT");
  }
}

/**
 * Waits until every node has just what a fresh start would program for the objects that the API server has now, object
 * by object (`fairlead verify`).
 */
export async function expectAsPlanned({ cluster, until }: Scene, mode: string, tool: Tool): Promise<void> {
  await until("the nodes to have what a fresh start would program", async () => {
    const reports = await Promise.all(cluster.nodes.map((node) => tool(node, mode, "verify", "-o", "json")));
    const wrong = reports.flatMap((text, at) =>
      findingsIn(text).map((finding) => `${cluster.nodes[at]?.name}: ${finding}`),
    );
    return wrong.length === 0 ? undefined : wrong.join("\n");
  });
}

interface FamilyReport {
  readonly services: readonly ServiceReport[];
}

/** What `fairlead verify -o json` has found, a line each. */
export function findingsIn(text: string): readonly string[] {
  const reports: readonly FamilyReport[] = JSON.parse(text);
  return reports
    .flatMap(({ services }) => services.flatMap(({ findings }) => findings))
    .map(({ kind, service = "", where, what }) => `${kind} ${service} ${where}: ${what}`);
}
