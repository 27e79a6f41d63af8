import { isObject, numberOf, stringOf, valueAt } from "@fairlead/base";
import type { NftFamily } from "../family.ts";
import { HOOKS, type NftChain, type NftFlowtable, type NftTable } from "../model.ts";
import { type ReadPhrase, TableBuilder } from "../reading/table-builder.ts";
import { NotKnown } from "../reading/values.ts";
import { listOf } from "./list.ts";
import { elementIn } from "./operands.ts";
import { setFactsIn } from "./sets.ts";
import { phraseIn } from "./statements.ts";

/**
 * Reads what `nft -j list ruleset` or `nft -j list table` printed. What is not known here is treated as `readTables`
 * does; what nft leaves out of its JSON (comments of tables and chains, in 1.0.6 also the flag "dynamic") is not there.
 *
 * @param listing already parsed
 */
export function readTablesFromJson(listing: unknown): readonly NftTable[] {
  const builders = new Map<string, TableBuilder>();
  for (const object of listOf(valueAt(listing, "nftables"))) {
    const [kind, facts] = isObject(object) ? (Object.entries(object)[0] ?? []) : [];
    const family = valueAt(facts, "family");
    if (kind === undefined || facts === undefined || (family !== "ip" && family !== "ip6")) continue;
    if (kind === "table") add(builders, family, facts);
    else take(builders.get(`${family} ${stringOf(valueAt(facts, "table"))}`), kind, facts);
  }
  return Array.from(builders.values(), (builder) => builder.table());
}

function add(builders: Map<string, TableBuilder>, family: NftFamily, facts: unknown): void {
  const name = stringOf(valueAt(facts, "name")) ?? "";
  builders.set(`${family} ${name}`, new TableBuilder(family, name, stringOf(valueAt(facts, "comment"))));
}

function take(builder: TableBuilder | undefined, kind: string, facts: unknown): void {
  if (kind === "chain") builder?.addChain(chainIn(facts));
  else if (kind === "rule") addRule(builder, facts);
  else if (kind === "set" || kind === "map") addSet(builder, facts);
  else if (kind === "flowtable") builder?.addFlowtable(flowtableIn(facts));
}

/** A single device is no list; whether it counts, nft leaves out. */
function flowtableIn(json: unknown): NftFlowtable {
  const devices = valueAt(json, "dev");
  return {
    name: stringOf(valueAt(json, "name")) ?? "",
    priority: numberOf(valueAt(json, "prio")) ?? 0,
    devices: (typeof devices === "string" ? [devices] : listOf(devices)).flatMap((one) => stringOf(one) ?? []),
  };
}

function chainIn(json: unknown): Omit<NftChain, "rules"> {
  const name = stringOf(valueAt(json, "name")) ?? "";
  const comment = stringOf(valueAt(json, "comment"));
  const [type, priority] = [stringOf(valueAt(json, "type")), numberOf(valueAt(json, "prio"))];
  const hook = HOOKS.find((one) => one === valueAt(json, "hook"));
  const about = { name, ...(comment !== undefined && { comment }) };
  if (hook === undefined || priority === undefined) return about;
  if (type !== "filter" && type !== "nat" && type !== "route") return about;
  return { ...about, base: { type, hook, priority, policy: valueAt(json, "policy") === "drop" ? "drop" : "accept" } };
}

function addSet(builder: TableBuilder | undefined, json: unknown): void {
  try {
    builder?.addSet(setFactsIn(json), listOf(valueAt(json, "elem")).map(elementIn));
  } catch (error) {
    // A set of another kind: rules that look into it say so.
    if (!(error instanceof NotKnown)) throw error;
  }
}

function addRule(builder: TableBuilder | undefined, json: unknown): void {
  const comment = stringOf(valueAt(json, "comment"));
  const handle = numberOf(valueAt(json, "handle"));
  builder?.addRule(stringOf(valueAt(json, "chain")) ?? "", listOf(valueAt(json, "expr")).map(readPhrase), {
    ...(comment !== undefined && { comment }),
    ...(handle !== undefined && { handle: BigInt(handle) }),
  });
}

function readPhrase(json: unknown): ReadPhrase {
  const asText = JSON.stringify(json);
  try {
    return { phrase: phraseIn(json), text: asText };
  } catch (error) {
    if (!(error instanceof NotKnown)) throw error;
    return { phrase: { kind: "unknown", text: asText }, text: asText };
  }
}
