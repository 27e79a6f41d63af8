import { isObject, numberOf, stringOf, valueAt } from "@fairlead/base";
import { isNamedObject, type NamedObject } from "../named-objects.ts";
import { maskOf } from "../reading/match.ts";
import type { Operator, Phrase } from "../reading/phrases.ts";
import { listOf } from "./list.ts";
import { notKnown, operandIn, setIn, valueText } from "./operands.ts";
import { verdictIn } from "./verdict.ts";

/**
 * A statement of a rule (libnftables-json(5)).
 *
 * @throws NotKnown
 */
export function phraseIn(json: unknown): Phrase {
  const verdict = verdictIn(json);
  if (verdict !== undefined) return { kind: "verdict", verdict };
  const [name = "", content] = isObject(json) ? (Object.entries(json)[0] ?? []) : [];
  const object = isNamedObject(name) ? objectIn(name, content) : undefined;
  if (object !== undefined) return object;
  const read = READERS.get(name);
  if (read === undefined || content === undefined) throw notKnown(json);
  return read(content);
}

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

const OPERATORS: readonly Operator[] = ["==", "!=", "<", "<=", ">", ">=", "in", "!"];

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
