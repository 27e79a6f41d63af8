import { createHash } from "node:crypto";
import { runnerIn } from "@fairlead/e2e/lab/apply";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import { type Hex, type NftRule, type NftTable, readTables, type Verdict, verdictText } from "@fairlead/netfilter/nft";
import type { RuleDigests } from "./rules.ts";

/** Maps that lead a packet to its service, or refuse it, in the tables of both proxies. */
const DISPATCH = ["service-ips", "service-nodeports", "no-endpoint-services", "no-endpoint-nodeports"];

/** A listing of a large table takes nft minutes. */
const LIST_MS = 20 * 60_000;

/** Reads what each frontend leads to, which is what the tables of both proxies have in common. */
export async function readNftRules(node: NetworkNamespace): Promise<RuleDigests> {
  const argv = ["nft", "list", "table", "ip", "kube-proxy"] as const;
  const { stdout } = await runnerIn(node).run(argv, { timeoutMs: LIST_MS });
  return new Map(readTables(stdout).flatMap((table) => [...frontendsOf(table)]));
}

/** `service-ips 0a600001…` → a digest of the endpoints. */
export function* frontendsOf(table: NftTable): Generator<readonly [frontend: string, digest: string]> {
  for (const name of DISPATCH) {
    for (const { key, value } of table.sets.get(name)?.elements.values() ?? []) {
      if (typeof value !== "object") continue;
      const ends = [...new Set(endsOf(table, key, value, new Set()))].sort();
      yield [`${name} ${key}`, createHash("sha256").update(ends.join("\n")).digest("base64url").slice(0, 16)];
    }
  }
}

/** Where a packet to a frontend can end: endpoints, or a verdict. */
function* endsOf(table: NftTable, key: Hex, verdict: Verdict, seen: Set<string>): Generator<string> {
  if (!("chain" in verdict)) {
    yield verdictText(verdict);
    return;
  }
  if (seen.has(verdict.chain)) return;
  seen.add(verdict.chain);
  for (const rule of table.chains.get(verdict.chain)?.rules ?? []) yield* endsOfRule(table, key, rule, seen);
}

function* endsOfRule(table: NftTable, key: Hex, { expressions }: NftRule, seen: Set<string>): Generator<string> {
  const constants: Hex[] = [];
  for (const expression of expressions) {
    if (expression.kind === "immediate" && "value" in expression) constants.push(expression.value);
    else if (expression.kind === "immediate") yield* endsOf(table, key, expression.verdict, seen);
    else if (expression.kind === "lookup" && expression.to !== undefined) {
      yield* endsOfMap(table, key, expression.set, seen);
    } else if (expression.kind === "nat" && constants.length > 0) yield endpointOf(constants.join(""));
  }
}

function* endsOfMap(table: NftTable, key: Hex, map: string, seen: Set<string>): Generator<string> {
  for (const value of valuesOf(table, map, key)) {
    if (typeof value === "object") yield* endsOf(table, key, value, seen);
    else yield endpointOf(value);
  }
}

/** What stands under the frontend's key, with a slot behind it or not; in a map of another kind, all. */
function valuesOf(table: NftTable, set: string, key: Hex): readonly (Hex | Verdict)[] {
  const all = [...(table.sets.get(set)?.elements.values() ?? [])];
  const own = all.filter((element) => element.key.startsWith(key));
  const isOwn = own.length > 0 || all.some((element) => element.key.length >= key.length);
  return (isOwn ? own : all).flatMap(({ value }) => value ?? []);
}

/** Address and port, without what pads them. */
function endpointOf(value: Hex): string {
  return value.slice(0, 12);
}
