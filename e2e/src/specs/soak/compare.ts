import { modeNamed } from "../../modes/index.ts";
import type { ClusterNode } from "../../provider/cluster.ts";
import type { Scene } from "../scene.ts";
import type { Tool } from "../tool-on.ts";

/** The rules of every node in both families, as a set of lines. */
export type RulesSeen = ReadonlyMap<string, ReadonlySet<string>>;

export async function readRules({ cluster }: Scene, mode: string): Promise<RulesSeen> {
  const { listings, linesOf } = modeNamed(mode).rules;
  const onNode = async ({ name, run }: ClusterNode) => {
    const listed = await Promise.all(listings.map((argv) => run(argv)));
    const lines = listed.flatMap(({ stdout }, at) => linesOf(stdout).flatMap((line) => partsOf(line, at)));
    return [name, new Set(lines)] as const;
  };
  return new Map(await Promise.all(cluster.nodes.map(onNode)));
}

/** nft writes several elements on a line, in the order of its hash tables. @param listing which one, to be told apart */
function partsOf(line: string, listing: number): readonly string[] {
  const elements = line
    .replace(/^elements = \{/, "")
    .replace(/\}$/, "")
    .split(",");
  return (line.startsWith("-A ") ? [line] : elements)
    .map((part) => `${listing} ${part.trim()}`)
    .filter((part) => part !== `${listing} `);
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
 * Waits until every node has just what a fresh start would program for the objects that the API server has now, object
 * by object (`fairlead verify`).
 */
export async function expectAsPlanned({ cluster, until }: Scene, mode: string, tool: Tool): Promise<void> {
  await until("the nodes to have what a fresh start would program", async () => {
    const told = await Promise.all(cluster.nodes.map((node) => tool(node, mode, "verify").catch(String)));
    const wrong = told.flatMap((text, at) =>
      text.startsWith("nothing differs") ? [] : [`${cluster.nodes[at]?.name}: ${text}`],
    );
    return wrong.length === 0 ? undefined : wrong.join("\n");
  });
}
