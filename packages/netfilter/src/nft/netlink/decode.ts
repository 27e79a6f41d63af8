import type { Attributes } from "../../netlink/reader.ts";
import { decodeVerdict } from "../expressions/immediate.ts";
import { type Expression, expressionKinds } from "../expressions/index.ts";
import type { ExpressionKind } from "../expressions/kind.ts";
import type { Verdict } from "../expressions/verdict.ts";
import type { NftFamily } from "../family.ts";
import type { Hex } from "../hex.ts";
import {
  type BaseChain,
  HOOKS,
  type NftChain,
  type NftRule,
  type NftSet,
  SET_FLAGS,
  type SetElement,
  type SetFlag,
} from "../model.ts";
import { type NamedObject, objectOf } from "../named-objects.ts";
import { typesOf } from "../types.ts";
import { foreignExpression } from "./foreign.ts";
import * as numbers from "./numbers.ts";
import { commentOf } from "./user-data.ts";

/** A rule or a set that has something which is not known here: a trace or comparison must say so. */
export class UnreadableNft extends Error {
  override readonly name = "UnreadableNft";
}

/** Whether packets do not reach the chains of a table (`flags dormant`). */
export function isDormant(of: Attributes): boolean {
  return ((of.u32(numbers.TABLE.flags) ?? 0) & numbers.TABLE_DORMANT) !== 0;
}

/** The comment of a table; undefined where it has none. */
export function tableCommentOf(of: Attributes): string | undefined {
  return commentOf("table", of.hex(numbers.TABLE.userData));
}

/**
 * A chain without its rules.
 *
 * @throws UnreadableNft when it is one of a type or a hook that is not known
 */
export function decodeChain(of: Attributes): Omit<NftChain, "rules"> {
  const name = of.text(numbers.CHAIN.name) ?? "";
  const base = baseOf(of, name);
  const comment = commentOf("chain", of.hex(numbers.CHAIN.userData));
  return { name, ...(base !== undefined && { base }), ...(comment !== undefined && { comment }) };
}

function baseOf(of: Attributes, name: string): BaseChain | undefined {
  const hooked = of.nested(numbers.CHAIN.hook);
  if (hooked === undefined) return undefined;
  const hook = HOOKS[hooked.u32(numbers.CHAIN_HOOK.number) ?? -1];
  const type = of.text(numbers.CHAIN.type);
  if (hook === undefined || (type !== "filter" && type !== "nat" && type !== "route")) {
    throw new UnreadableNft(`chain ${name}: its type ${type} or its hook is not known`);
  }
  const policy = of.u32(numbers.CHAIN.policy) === numbers.POLICIES.drop ? "drop" : "accept";
  return { type, hook, priority: hooked.i32(numbers.CHAIN_HOOK.priority) ?? 0, policy };
}

interface ChainsRule {
  readonly chain: string;
  readonly rule: NftRule;
}

/**
 * @returns the rule, and the chain that it is in
 * @throws UnreadableNft that names the expression
 */
export function decodeRule(of: Attributes, family: NftFamily): ChainsRule {
  return ruleOf(of, family, (name, chain) => {
    throw new UnreadableNft(`a rule of chain ${chain} has an expression ${name} that is not known`);
  });
}

/** As `decodeRule`, of any program's rules: expressions that have no type here are of the kind "unknown". */
export function decodeForeignRule(of: Attributes, family: NftFamily): ChainsRule {
  return ruleOf(of, family, (name, _chain, data) => foreignExpression(name, data));
}

type Otherwise = (name: string, chain: string, data: Attributes | undefined) => Expression;

function ruleOf(of: Attributes, family: NftFamily, otherwise: Otherwise): ChainsRule {
  const chain = of.text(numbers.RULE.chain) ?? "";
  const handle = of.u64(numbers.RULE.handle);
  const comment = commentOf("rule", of.hex(numbers.RULE.userData));
  const expressions = of.list(numbers.RULE.expressions).map((item) => {
    const name = item.text(numbers.EXPRESSION.name) ?? "";
    const data = item.nested(numbers.EXPRESSION.data);
    return (data && kindsByName.get(name)?.decode(data, family)) ?? otherwise(name, chain, data);
  });
  return {
    chain,
    rule: { expressions, ...(comment !== undefined && { comment }), ...(handle !== undefined && { handle }) },
  };
}

const kindsByName: ReadonlyMap<string, ExpressionKind<Expression>> = new Map(
  // Each reads what is of its own kind; which that is, its name has said.
  Object.values(expressionKinds).map((kind) => [kind.name, kind as unknown as ExpressionKind<Expression>]),
);

/**
 * A set without its elements.
 *
 * @throws UnreadableNft when its types are not known, or it is of a kind that is not read here
 */
export function decodeSet(of: Attributes): Omit<NftSet, "elements"> {
  const name = of.text(numbers.SET.name) ?? "";
  const bits = of.u32(numbers.SET.flags) ?? 0;
  const key = typesOf(of.u32(numbers.SET.keyType) ?? 0);
  const data = (bits & SET_FLAGS.map) === 0 ? undefined : dataOf(of.u32(numbers.SET.dataType) ?? 0);
  const objects = (bits & numbers.SET_OBJECT) === 0 ? undefined : objectsOf(of, name);
  if (key === undefined || data === "unknown") throw new UnreadableNft(`set ${name}: its types are not known`);
  if ((bits & numbers.UNREADABLE_SET_FLAGS) !== 0) throw new UnreadableNft(`set ${name}: its kind is not known`);
  onlyCounts(of, numbers.SET, `set ${name}`);
  const timeout = Number(of.u64(numbers.SET.timeout) ?? 0n);
  const size = of.nested(numbers.SET.description)?.u32(numbers.SET_DESCRIPTION.size) ?? 0;
  const userData = of.hex(numbers.SET.userData);
  const comment = commentOf("set", userData);
  return {
    name,
    key,
    flags: FLAG_NAMES.filter((flag) => (bits & SET_FLAGS[flag]) !== 0),
    ...(data !== undefined && { data }),
    ...(objects !== undefined && { objects }),
    ...(timeout > 0 && { timeout }),
    ...(size > 0 && { size }),
    ...(comment !== undefined && { comment }),
    ...(userData !== undefined && { userData }),
  };
}

/** In the order in which nft lists them. */
const FLAG_NAMES: readonly SetFlag[] = ["anonymous", "constant", "dynamic", "interval", "timeout"];

function objectsOf(of: Attributes, name: string): NamedObject {
  const objects = objectOf(of.u32(numbers.SET.objectType));
  if (objects === undefined) throw new UnreadableNft(`set ${name}: its objects are not known`);
  return objects;
}

function dataOf(type: number): NftSet["data"] | "unknown" {
  return type === numbers.VERDICT_TYPE ? "verdict" : (typesOf(type) ?? "unknown");
}

/**
 * What the kernel evaluates for each element may decide whether it is found, but for a counter.
 *
 * @throws UnreadableNft
 */
function onlyCounts(of: Attributes, at: { readonly expression: number; readonly expressions: number }, what: string) {
  const single = of.nested(at.expression);
  for (const one of [...(single === undefined ? [] : [single]), ...of.list(at.expressions)]) {
    const name = one.text(numbers.EXPRESSION.name);
    if (name !== expressionKinds.counter.name) throw new UnreadableNft(`${what}: it has an expression ${name}`);
  }
}

/**
 * @returns the set's name, and the elements that one message has of it
 * @throws UnreadableNft for an element that is not one key, or has more to it than is known here
 */
export function decodeElements(of: Attributes): { readonly set: string; readonly elements: readonly SetElement[] } {
  const set = of.text(numbers.ELEMENTS.set) ?? "";
  const elements = of.list(numbers.ELEMENTS.list).flatMap((item) => decodeElement(item, set) ?? []);
  return { set, elements };
}

function decodeElement(item: Attributes, set: string): SetElement | undefined {
  const flags = item.u32(numbers.ELEMENT.flags) ?? 0;
  if ((flags & numbers.CATCH_ALL) !== 0) throw new UnreadableNft(`set ${set}: it has an element for all other keys`);
  onlyCounts(item, numbers.ELEMENT, `an element of set ${set}`);
  const key = item.nested(numbers.ELEMENT.key)?.hex(numbers.DATA_VALUE);
  if (key === undefined) return undefined;
  const data = item.nested(numbers.ELEMENT.data);
  const value: Hex | Verdict | undefined = data && (data.hex(numbers.DATA_VALUE) ?? decodeVerdict(data));
  const object = item.text(numbers.ELEMENT.object);
  const comment = commentOf("element", item.hex(numbers.ELEMENT.userData));
  const [timeout, expires] = [item.u64(numbers.ELEMENT.timeout), item.u64(numbers.ELEMENT.expiration)];
  const isEnd = (flags & numbers.INTERVAL_END) !== 0;
  return {
    key,
    ...(value !== undefined && { value }),
    ...(object !== undefined && { object }),
    ...(timeout !== undefined && { timeout: Number(timeout) }),
    ...(expires !== undefined && { expires: Number(expires) }),
    ...(isEnd && { intervalEnd: true as const }),
    ...(comment !== undefined && { comment }),
  };
}
