/** Reads the JSON of `nft --json list` as tables. */

import { isObject, numberOf, stringOf, valueAt } from "@fairlead/base";
import { maskOf } from "./compile.ts";
import type { Verdict } from "./expressions/kind.ts";
import {
  HOOKS,
  type NftChain,
  type NftFlowtable,
  type NftSet,
  type NftTable,
  SET_FLAGS,
  type SetFlag,
} from "./model.ts";
import {
  dataTypes,
  fieldFacts,
  type ListedElement,
  type ListedSet,
  NotKnown,
  type Operand,
  type Operator,
  type Phrase,
} from "./phrases.ts";
import { type ReadPhrase, TableBuilder } from "./table-builder.ts";
import { type DataType, isNamedObject, type NamedObject, type NftFamily } from "./types.ts";

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

/**
 * A set or a map without its elements; times are in seconds.
 *
 * @throws NotKnown when it has types that are not known here
 */
function setFactsIn(json: unknown): Omit<NftSet, "elements"> {
  const data = valueAt(json, "map");
  const [timeout, size] = [numberOf(valueAt(json, "timeout")), numberOf(valueAt(json, "size"))];
  const comment = stringOf(valueAt(json, "comment"));
  return {
    name: stringOf(valueAt(json, "name")) ?? "",
    key: typesIn(valueAt(json, "type")),
    flags: listOf(valueAt(json, "flags")).flatMap(flagIn),
    ...(typeof data === "string" && isNamedObject(data)
      ? { objects: data }
      : data !== undefined && { data: data === "verdict" ? "verdict" : typesIn(data) }),
    ...(timeout !== undefined && { timeout: timeout * 1000 }),
    ...(size !== undefined && { size }),
    ...(comment !== undefined && { comment }),
  };
}

/** `"ipv4_addr"`, `["ipv4_addr", "inet_service"]`, `"ipv4_addr . inet_service"`, or an expression of the type. */
function typesIn(json: unknown): readonly DataType[] {
  const expression = valueAt(json, "typeof");
  if (expression !== undefined) return operandTypes(operandIn(expression));
  const names = listOf(json).flatMap((one) => stringOf(one)?.split(" . ") ?? []);
  if (names.length === 0) throw notKnown(json);
  return dataTypes(names);
}

function operandTypes(operand: Operand): readonly DataType[] {
  if (operand.kind === "concat") return operand.parts.flatMap(operandTypes);
  if (operand.kind === "numgen") return ["integer"];
  const type = fieldFacts(operand.name)?.type;
  if (type === undefined) throw new NotKnown(operand.name);
  return [type];
}

function flagIn(json: unknown): readonly SetFlag[] {
  return typeof json === "string" && json !== "map" && Object.hasOwn(SET_FLAGS, json) ? [json as SetFlag] : [];
}

/**
 * A statement of a rule (libnftables-json(5)).
 *
 * @throws NotKnown
 */
function phraseIn(json: unknown): Phrase {
  const verdict = verdictIn(json);
  if (verdict !== undefined) return { kind: "verdict", verdict };
  const [name = "", content] = isObject(json) ? (Object.entries(json)[0] ?? []) : [];
  const object = isNamedObject(name) ? objectIn(name, content) : undefined;
  if (object !== undefined) return object;
  const read = READERS.get(name);
  if (read === undefined || content === undefined) throw notKnown(json);
  return read(content);
}

const OPERATORS: readonly Operator[] = ["==", "!=", "<", "<=", ">", ">=", "in", "!"];

const SIMPLE = ["accept", "drop", "return", "continue"] as const;

const READERS: ReadonlyMap<string, (content: unknown) => Phrase> = new Map([
  ["match", matchIn],
  ["vmap", vmapIn],
  ["mangle", mangleIn],
  ["dnat", dnatIn],
  ["masquerade", masqueradeIn],
  ["reject", rejectIn],
  ["set", rememberIn],
  ["map", rememberIn],
  ["flow", flowIn],
  ["counter", (): Phrase => ({ kind: "counter" })],
]);

/** `{"counter": "c"}`, `{"quota": {"map": {"key": …, "data": "@m"}}}`; undefined: a statement without an object. */
function objectIn(object: NamedObject, content: unknown): Phrase | undefined {
  if (typeof content === "string") return { kind: "object", object, to: content };
  const map = valueAt(content, "map");
  const set = setIn(valueAt(map, "data"));
  if (set === undefined) return undefined;
  return { kind: "object", object, to: { key: operandIn(valueAt(map, "key")), set } };
}

function flowIn(json: unknown): Phrase {
  const flowtable = stringOf(valueAt(json, "flowtable"));
  if (valueAt(json, "op") !== "add" || flowtable === undefined) throw notKnown(json);
  return { kind: "flow-offload", flowtable: flowtable.replace(/^@/, "") };
}

function matchIn(json: unknown): Phrase {
  const operator = OPERATORS.find((one) => one === valueAt(json, "op"));
  if (operator === undefined) throw notKnown(json);
  const right = valueAt(json, "right");
  const set = setIn(right);
  const masked = valueAt(json, "left", "&");
  const [of, mask] = masked === undefined ? [valueAt(json, "left")] : listOf(masked);
  const left = operandIn(of);
  const bits = mask === undefined ? undefined : maskOf(left, listOf(mask).map(valueText).join(","));
  if (masked !== undefined && bits === undefined) throw notKnown(json);
  return {
    kind: "match",
    left,
    operator,
    right: set === undefined ? { value: listOf(right).map(valueText).join(",") } : { set },
    ...(bits !== undefined && { mask: bits }),
  };
}

function vmapIn(json: unknown): Phrase {
  const set = setIn(valueAt(json, "data"));
  if (set === undefined) throw notKnown(json);
  return { kind: "vmap", key: operandIn(valueAt(json, "key")), set };
}

/** `meta mark set meta mark | 0x4000`, `meta mark set 0x4000`, `ct mark set ct mark & 0xffffcfff | 0x1000`. */
function mangleIn(json: unknown): Phrase {
  const within = markWithin(json);
  if (within !== undefined) return within;
  const mark = numberOf(valueAt(json, "value"));
  if (mark !== undefined && valueAt(json, "key", "meta", "key") === "mark")
    return { kind: "mark", operator: "=", bits: mark };
  for (const operator of ["|", "^"] as const) {
    const [mark, bits] = listOf(valueAt(json, "value", operator));
    const isMark = [valueAt(json, "key"), mark].every((one) => valueAt(one, "meta", "key") === "mark");
    if (isMark && typeof bits === "number") return { kind: "mark", operator, bits };
  }
  throw notKnown(json);
}

function markWithin(json: unknown): Phrase | undefined {
  const of = (["meta", "ct"] as const).find((one) => valueAt(json, "key", one, "key") === "mark");
  const [kept, bits] = listOf(valueAt(json, "value", "|"));
  const [mark, keep] = listOf(valueAt(kept, "&"));
  if (of === undefined || valueAt(mark, of, "key") !== "mark") return undefined;
  if (typeof keep !== "number" || typeof bits !== "number") return undefined;
  return { kind: "mark-within", of, keep, bits };
}

function dnatIn(json: unknown): Phrase {
  const address = valueAt(json, "addr");
  const map = valueAt(address, "map");
  if (map !== undefined) {
    const set = setIn(valueAt(map, "data"));
    if (set === undefined) throw notKnown(json);
    return { kind: "dnat-map", key: operandIn(valueAt(map, "key")), set };
  }
  const port = numberOf(valueAt(json, "port"));
  if (typeof address !== "string" || valueAt(json, "flags") !== undefined) throw notKnown(json);
  return { kind: "dnat", address, ...(port !== undefined && { port }) };
}

function masqueradeIn(json: unknown): Phrase {
  if (json === null) return { kind: "masquerade", fullyRandom: false };
  const flags = listOf(valueAt(json, "flags"));
  if (flags.length !== 1 || flags[0] !== "fully-random" || valueAt(json, "port") !== undefined) throw notKnown(json);
  return { kind: "masquerade", fullyRandom: true };
}

function rejectIn(json: unknown): Phrase {
  const type = stringOf(valueAt(json, "type"));
  if (type === "tcp reset") return { kind: "reject", with: "tcp-reset" };
  const isPort = json === null || (type?.startsWith("icmp") && valueAt(json, "expr") === "port-unreachable");
  if (!isPort) throw notKnown(json);
  return { kind: "reject", with: "port-unreachable" };
}

function rememberIn(json: unknown): Phrase {
  const operation = (["add", "update", "delete"] as const).find((one) => one === valueAt(json, "op"));
  const set = stringOf(valueAt(json, "set") ?? valueAt(json, "map"));
  const element = valueAt(json, "elem");
  const value = valueAt(json, "data");
  const seconds = numberOf(valueAt(element, "elem", "timeout"));
  if (operation === undefined || set === undefined) throw notKnown(json);
  return {
    kind: "remember",
    operation,
    set: set.replace(/^@/, ""),
    key: operandIn(valueAt(element, "elem", "val") ?? element),
    ...(value !== undefined && { value: operandIn(value) }),
    ...(seconds !== undefined && { timeout: seconds * 1000 }),
  };
}

/** @throws NotKnown */
function operandIn(json: unknown): Operand {
  const parts = valueAt(json, "concat");
  if (parts !== undefined) return { kind: "concat", parts: listOf(parts).map(operandIn) };
  const numgen = valueAt(json, "numgen");
  if (numgen !== undefined) {
    const modulus = numberOf(valueAt(numgen, "mod"));
    if (valueAt(numgen, "mode") !== "random" || modulus === undefined || valueAt(numgen, "offset") !== 0)
      throw notKnown(json);
    return { kind: "numgen", modulus };
  }
  const name = fieldName(json);
  if (name === undefined) throw notKnown(json);
  return { kind: "field", name };
}

/** As nft writes it in text. */
function fieldName(json: unknown): string | undefined {
  const [protocol, field] = [
    stringOf(valueAt(json, "payload", "protocol")),
    stringOf(valueAt(json, "payload", "field")),
  ];
  if (protocol !== undefined && field !== undefined) return `${protocol} ${field}`;
  const meta = stringOf(valueAt(json, "meta", "key"));
  if (meta !== undefined) return `meta ${meta}`;
  const ct = stringOf(valueAt(json, "ct", "key"));
  const direction = stringOf(valueAt(json, "ct", "dir"));
  if (ct !== undefined) return direction === undefined ? `ct ${ct}` : `ct ${direction} ${ct}`;
  const [flag, ...others] = listOf(valueAt(json, "fib", "flags"));
  if (valueAt(json, "fib", "result") !== "type" || others.length > 0) return undefined;
  return `fib ${stringOf(flag)} type`;
}

/** `"@name"`, or the elements of an anonymous set; undefined: neither. */
function setIn(json: unknown): ListedSet | undefined {
  if (typeof json === "string") return json.startsWith("@") ? json.slice(1) : undefined;
  const elements = valueAt(json, "set");
  return elements === undefined ? undefined : listOf(elements).map(elementIn);
}

/** An element of a set, or a pair of a map. */
function elementIn(json: unknown): ListedElement {
  if (!Array.isArray(json)) return keyIn(json);
  const [key, value] = json;
  return { ...keyIn(key), value: verdictIn(value) ?? valueText(value) };
}

/** Times are in seconds. */
function keyIn(json: unknown): ListedElement {
  const about = valueAt(json, "elem");
  if (about === undefined) return { key: valueText(json) };
  const milliseconds = (name: string) => {
    const seconds = numberOf(valueAt(about, name));
    return seconds === undefined ? {} : { [name]: seconds * 1000 };
  };
  const comment = stringOf(valueAt(about, "comment"));
  return {
    key: valueText(valueAt(about, "val")),
    ...milliseconds("timeout"),
    ...milliseconds("expires"),
    ...(comment !== undefined && { comment }),
  };
}

/**
 * A value as nft writes it in text.
 *
 * @throws NotKnown
 */
function valueText(json: unknown): string {
  if (typeof json === "string" || typeof json === "number") return String(json);
  const prefix = valueAt(json, "prefix");
  if (prefix !== undefined) return `${valueText(valueAt(prefix, "addr"))}/${valueText(valueAt(prefix, "len"))}`;
  const range = valueAt(json, "range");
  if (range !== undefined) return listOf(range).map(valueText).join("-");
  const parts = valueAt(json, "concat");
  if (parts !== undefined) return listOf(parts).map(valueText).join(" . ");
  throw notKnown(json);
}

function notKnown(json: unknown): NotKnown {
  return new NotKnown(isObject(json) || Array.isArray(json) ? JSON.stringify(json) : String(json));
}

/** @returns undefined: it is not a verdict */
function verdictIn(json: unknown): Verdict | undefined {
  if (!isObject(json)) return undefined;
  const simple = SIMPLE.find((kind) => Object.hasOwn(json, kind));
  if (simple !== undefined) return { kind: simple };
  for (const kind of ["jump", "goto"] as const) {
    const chain = stringOf(valueAt(json, kind, "target"));
    if (chain !== undefined) return { kind, chain };
  }
  return undefined;
}

/** libnftables' JSON has one thing in place of a list of one. */
function listOf(json: unknown): readonly unknown[] {
  if (Array.isArray(json)) return json;
  return json === undefined ? [] : [json];
}
