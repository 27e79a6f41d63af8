import { isNamedObject, type NamedObject } from "../named-objects.ts";
import { maskOf } from "../reading/match.ts";
import type { Operator, Phrase } from "../reading/phrases.ts";
import { isObject, type Json, listOf, member, number, text } from "./json.ts";
import { notKnown, operandIn, setIn, valueText } from "./operands.ts";
import { verdictIn } from "./verdict.ts";

/**
 * A statement of a rule (libnftables-json(5)).
 *
 * @throws NotKnown
 */
export function phraseIn(json: Json): Phrase {
  const verdict = verdictIn(json);
  if (verdict !== undefined) return { kind: "verdict", verdict };
  const [name = "", content] = isObject(json) ? (Object.entries(json)[0] ?? []) : [];
  const object = isNamedObject(name) ? objectIn(name, content) : undefined;
  if (object !== undefined) return object;
  const read = READERS.get(name);
  if (read === undefined || content === undefined) throw notKnown(json);
  return read(content);
}

const READERS: ReadonlyMap<string, (content: Json) => Phrase> = new Map([
  ["match", matchIn],
  ["vmap", vmapIn],
  ["mangle", mangleIn],
  ["dnat", dnatIn],
  ["masquerade", masqueradeIn],
  ["reject", rejectIn],
  ["set", rememberIn],
  ["counter", (): Phrase => ({ kind: "counter" })],
]);

/** `{"counter": "c"}`, `{"quota": {"map": {"key": …, "data": "@m"}}}`; undefined: a statement without an object. */
function objectIn(object: NamedObject, content: Json | undefined): Phrase | undefined {
  if (typeof content === "string") return { kind: "object", object, to: content };
  const map = member(content, "map");
  const set = setIn(member(map, "data"));
  if (set === undefined) return undefined;
  return { kind: "object", object, to: { key: operandIn(member(map, "key")), set } };
}

const OPERATORS: readonly Operator[] = ["==", "!=", "<", "<=", ">", ">=", "in", "!"];

function matchIn(json: Json): Phrase {
  const operator = OPERATORS.find((one) => one === member(json, "op"));
  if (operator === undefined) throw notKnown(json);
  const right = member(json, "right");
  const set = setIn(right);
  const masked = member(json, "left", "&");
  const [of, mask] = masked === undefined ? [member(json, "left")] : listOf(masked);
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

function vmapIn(json: Json): Phrase {
  const set = setIn(member(json, "data"));
  if (set === undefined) throw notKnown(json);
  return { kind: "vmap", key: operandIn(member(json, "key")), set };
}

/** `meta mark set meta mark | 0x4000`, `meta mark set 0x4000`. */
function mangleIn(json: Json): Phrase {
  const mark = number(member(json, "value"));
  if (mark !== undefined && member(json, "key", "meta", "key") === "mark")
    return { kind: "mark", operator: "=", bits: mark };
  for (const operator of ["|", "^"] as const) {
    const [mark, bits] = listOf(member(json, "value", operator));
    const isMark = [member(json, "key"), mark].every((one) => member(one, "meta", "key") === "mark");
    if (isMark && typeof bits === "number") return { kind: "mark", operator, bits };
  }
  throw notKnown(json);
}

function dnatIn(json: Json): Phrase {
  const address = member(json, "addr");
  const map = member(address, "map");
  if (map !== undefined) {
    const set = setIn(member(map, "data"));
    if (set === undefined) throw notKnown(json);
    return { kind: "dnat-map", key: operandIn(member(map, "key")), set };
  }
  const port = number(member(json, "port"));
  if (typeof address !== "string" || member(json, "flags") !== undefined) throw notKnown(json);
  return { kind: "dnat", address, ...(port !== undefined && { port }) };
}

function masqueradeIn(json: Json): Phrase {
  if (json === null) return { kind: "masquerade", fullyRandom: false };
  const flags = listOf(member(json, "flags"));
  if (flags.length !== 1 || flags[0] !== "fully-random" || member(json, "port") !== undefined) throw notKnown(json);
  return { kind: "masquerade", fullyRandom: true };
}

function rejectIn(json: Json): Phrase {
  const type = text(member(json, "type"));
  if (type === "tcp reset") return { kind: "reject", with: "tcp-reset" };
  const isPort = json === null || (type?.startsWith("icmp") && member(json, "expr") === "port-unreachable");
  if (!isPort) throw notKnown(json);
  return { kind: "reject", with: "port-unreachable" };
}

function rememberIn(json: Json): Phrase {
  const operation = (["add", "update", "delete"] as const).find((one) => one === member(json, "op"));
  const set = text(member(json, "set"));
  const element = member(json, "elem");
  const seconds = number(member(element, "elem", "timeout"));
  if (operation === undefined || set === undefined) throw notKnown(json);
  return {
    kind: "remember",
    operation,
    set: set.replace(/^@/, ""),
    key: operandIn(member(element, "elem", "val") ?? element),
    ...(seconds !== undefined && { timeout: seconds * 1000 }),
  };
}
