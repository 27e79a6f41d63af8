import type { NftFamily } from "../family.ts";
import { HOOKS, type NftChain, type NftTable } from "../model.ts";
import { type ReadPhrase, TableBuilder } from "../reading/table-builder.ts";
import { NotKnown } from "../reading/values.ts";
import { isObject, type Json, listOf, member, number, text } from "./json.ts";
import { elementIn } from "./operands.ts";
import { setFactsIn } from "./sets.ts";
import { phraseIn } from "./statements.ts";

/**
 * Reads what `nft -j list ruleset` or `nft -j list table` printed. What is not known here is treated as `readTables`
 * does; what nft leaves out of its JSON (comments of tables and chains, in 1.0.6 also the flag "dynamic") is not there.
 *
 * @param listing already parsed
 */
export function readTablesFromJson(listing: Json): readonly NftTable[] {
  const builders = new Map<string, TableBuilder>();
  for (const object of listOf(member(listing, "nftables"))) {
    const [kind, facts] = isObject(object) ? (Object.entries(object)[0] ?? []) : [];
    const family = member(facts, "family");
    if (kind === undefined || facts === undefined || (family !== "ip" && family !== "ip6")) continue;
    if (kind === "table") add(builders, family, facts);
    else take(builders.get(`${family} ${text(member(facts, "table"))}`), kind, facts);
  }
  return Array.from(builders.values(), (builder) => builder.table());
}

function add(builders: Map<string, TableBuilder>, family: NftFamily, facts: Json): void {
  const name = text(member(facts, "name")) ?? "";
  builders.set(`${family} ${name}`, new TableBuilder(family, name, text(member(facts, "comment"))));
}

function take(builder: TableBuilder | undefined, kind: string, facts: Json): void {
  if (kind === "chain") builder?.addChain(chainIn(facts));
  else if (kind === "rule") addRule(builder, facts);
  else if (kind === "set" || kind === "map") addSet(builder, facts);
}

function chainIn(json: Json): Omit<NftChain, "rules"> {
  const name = text(member(json, "name")) ?? "";
  const comment = text(member(json, "comment"));
  const [type, priority] = [text(member(json, "type")), number(member(json, "prio"))];
  const hook = HOOKS.find((one) => one === member(json, "hook"));
  const about = { name, ...(comment !== undefined && { comment }) };
  if (hook === undefined || priority === undefined) return about;
  if (type !== "filter" && type !== "nat" && type !== "route") return about;
  return { ...about, base: { type, hook, priority, policy: member(json, "policy") === "drop" ? "drop" : "accept" } };
}

function addSet(builder: TableBuilder | undefined, json: Json): void {
  try {
    builder?.addSet(setFactsIn(json), listOf(member(json, "elem")).map(elementIn));
  } catch (error) {
    // A set of another kind: rules that look into it say so.
    if (!(error instanceof NotKnown)) throw error;
  }
}

function addRule(builder: TableBuilder | undefined, json: Json): void {
  const comment = text(member(json, "comment"));
  const handle = number(member(json, "handle"));
  builder?.addRule(text(member(json, "chain")) ?? "", listOf(member(json, "expr")).map(readPhrase), {
    ...(comment !== undefined && { comment }),
    ...(handle !== undefined && { handle: BigInt(handle) }),
  });
}

function readPhrase(json: Json): ReadPhrase {
  const asText = JSON.stringify(json);
  try {
    return { phrase: phraseIn(json), text: asText };
  } catch (error) {
    if (!(error instanceof NotKnown)) throw error;
    return { phrase: { kind: "unknown", text: asText }, text: asText };
  }
}
