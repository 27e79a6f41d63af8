/** Reads messages of nf_tables: objects of listings, and whole batches. */

import { Attributes } from "../../netlink/attributes.ts";
import type { Unknown } from "../expressions/actions.ts";
import { type ExpressionKind, registerOf, VERDICT_REGISTER, type Verdict } from "../expressions/kind.ts";
import { decodeVerdict } from "../expressions/operations.ts";
import { type Expression, expressionKinds } from "../expressions/table.ts";
import {
  type BaseChain,
  HOOKS,
  type NftChain,
  type NftFlowtable,
  type NftRule,
  type NftSet,
  SET_FLAGS,
  type SetElement,
  type SetFlag,
} from "../model.ts";
import { FAMILY_NUMBERS, type Hex, keyTypesOf, type NamedObject, type NftFamily, objectOf, typesOf } from "../types.ts";
import * as numbers from "./numbers.ts";
import { commentOf, decodeDevices, decodeFlowtable } from "./objects.ts";

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

/**
 * A set without its elements.
 *
 * @throws UnreadableNft when its types are not known, or it is of a kind that is not read here
 */
export function decodeSet(of: Attributes): Omit<NftSet, "elements"> {
  const name = of.text(numbers.SET.name) ?? "";
  const bits = of.u32(numbers.SET.flags) ?? 0;
  const types = typesOf(of.u32(numbers.SET.keyType) ?? 0);
  const key = types && keyTypesOf(types, (bits & SET_FLAGS.interval) !== 0);
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

/**
 * @returns the set's name, and the elements that one message has of it
 * @throws UnreadableNft for an element that is not one key, or has more to it than is known here
 */
export function decodeElements(of: Attributes): { readonly set: string; readonly elements: readonly SetElement[] } {
  const set = of.text(numbers.ELEMENTS.set) ?? "";
  const elements = of.list(numbers.ELEMENTS.list).flatMap((item) => decodeElement(item, set) ?? []);
  return { set, elements };
}

/** What one message of a batch asks for. */
export type NftChange =
  | { readonly kind: "add-table"; readonly comment?: string }
  | { readonly kind: "delete-table" }
  | { readonly kind: "add-chain"; readonly chain: Omit<NftChain, "rules"> }
  | { readonly kind: "delete-chain"; readonly name: string }
  | { readonly kind: "flush-chain"; readonly name: string }
  | { readonly kind: "add-rule"; readonly chain: string; readonly rule: NftRule }
  | { readonly kind: "delete-rule"; readonly chain: string; readonly handle: bigint }
  | { readonly kind: "add-set"; readonly set: Omit<NftSet, "elements"> }
  | { readonly kind: "delete-set"; readonly name: string }
  | { readonly kind: "add-elements"; readonly set: string; readonly elements: readonly SetElement[] }
  | { readonly kind: "delete-elements"; readonly set: string; readonly keys: readonly Hex[] }
  | { readonly kind: "flush-set"; readonly name: string }
  | { readonly kind: "add-flowtable"; readonly flowtable: NftFlowtable }
  | { readonly kind: "delete-flowtable"; readonly name: string }
  | { readonly kind: "delete-devices"; readonly flowtable: string; readonly devices: readonly string[] };

/** One message of a batch. */
export interface NftRequest {
  /** By which the kernel's answer names it. */
  readonly sequence: number;
  /** The family of the table. */
  readonly family: NftFamily;
  /** The table's name. */
  readonly table: string;
  /** What it does. */
  readonly change: NftChange;
}

/** A batch as the kernel reads it. */
export interface DecodedBatch {
  /** In their order. */
  readonly requests: readonly NftRequest[];
  /** False: it has no end, so that the kernel only checks it. */
  readonly commits: boolean;
}

const { BATCH, FLAGS, MESSAGES, SUBSYSTEM } = numbers;

/**
 * Reads a transaction as the kernel does.
 *
 * @param bytes of a finished `NftBatch`
 * @throws UnreadableNft for what the kernel would not take as a transaction, and for what is not known here
 */
export function decodeBatch(bytes: Buffer): DecodedBatch {
  const [first, ...messages] = framesOf(bytes);
  if (first?.type !== BATCH.begin || first.resource !== SUBSYSTEM)
    throw new UnreadableNft("a transaction begins with NFNL_MSG_BATCH_BEGIN and the number of nf_tables");
  const commits = messages.at(-1)?.type === BATCH.end;
  const frames = commits ? messages.slice(0, -1) : messages;
  for (const [at, { flags }] of frames.entries()) {
    if (((flags & FLAGS.acknowledge) !== 0) !== (at === frames.length - 1))
      throw new UnreadableNft(`message ${at + 1} of ${frames.length}: the last one, and no other, asks for an answer`);
  }
  return { requests: frames.map((frame) => decodeRequest(frame)), commits };
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

/** What the kernel evaluates for each element may decide whether it is found, but for a counter. */
function onlyCounts(of: Attributes, at: { readonly expression: number; readonly expressions: number }, what: string) {
  const single = of.nested(at.expression);
  for (const one of [...(single === undefined ? [] : [single]), ...of.list(at.expressions)]) {
    const name = one.text(numbers.EXPRESSION.name);
    if (name !== expressionKinds.counter.name) throw new UnreadableNft(`${what}: it has an expression ${name}`);
  }
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

/** What is known of a kind of expressions that has no type here, by the kernel's name. */
interface ForeignKind {
  /** NFTA_*_DREG: where it leaves what it finds. */
  readonly to?: number;
  /** It only lets the packet on, or only says yes or no. */
  readonly effect?: Unknown["effect"];
  /** The attribute with a name that says more: an extension of iptables. */
  readonly named?: number;
}

/** linux/netfilter/nf_tables.h, and nf_tables_compat.h for `match` and `target`. */
const KINDS: ReadonlyMap<string, ForeignKind> = new Map<string, ForeignKind>([
  ["bitwise", { to: 2 }],
  ["byteorder", { to: 2 }],
  ["connlimit", { effect: "test" }],
  ["ct", { to: 1 }],
  ["exthdr", { to: 1 }],
  ["fib", { to: 1 }],
  ["hash", { to: 2 }],
  ["last", { effect: "none" }],
  ["limit", { effect: "test" }],
  ["log", { effect: "none" }],
  ["match", { effect: "test", named: 1 }],
  ["meta", { to: 1 }],
  ["numgen", { to: 1 }],
  ["osf", { to: 1 }],
  ["payload", { to: 1 }],
  ["quota", { effect: "test" }],
  ["range", { effect: "test" }],
  ["rt", { to: 1 }],
  ["socket", { to: 2 }],
  ["target", { named: 1 }],
  ["tunnel", { to: 2 }],
  ["xfrm", { to: 1 }],
]);

/** enum nft_meta_keys: setting them changes nothing that rules ask for (priority, pkttype). */
const META = { key: 2, harmless: new Set<number | undefined>([2, 19]) } as const;

/**
 * An expression of another program's rule that has no type here, as much as is known of it: its name, where it leaves a
 * value, and whether it can do anything else than let the packet on.
 *
 * @param data absent: the kernel says nothing but the name
 */
function foreignExpression(name: string, data: Attributes | undefined): Unknown {
  const { to, effect, named } = KINDS.get(name) ?? {};
  const more = named === undefined ? undefined : data?.text(named);
  const text = `[ ${more === undefined ? name : `${name} ${more}`} ]`;
  const register = to === undefined ? undefined : data?.u32(to);
  if (register !== undefined && register !== VERDICT_REGISTER) {
    return { kind: "unknown", text, effect: "none", to: registerOf(register) };
  }
  const harmless = name === "meta" && META.harmless.has(data?.u32(META.key));
  const known = harmless ? "none" : effect;
  return { kind: "unknown", text, ...(known !== undefined && { effect: known }) };
}

interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly sequence: number;
  readonly family: number;
  readonly resource: number;
  readonly attributes: Attributes;
}

/** nlmsghdr and nfgenmsg. */
const HEADER = 20;

function framesOf(bytes: Buffer): readonly Frame[] {
  const frames: Frame[] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = at + HEADER <= bytes.length ? bytes.readUInt32LE(at) : 0;
    if (length < HEADER || at + length > bytes.length)
      throw new UnreadableNft(`a message of ${length} bytes at ${at} of ${bytes.length}`);
    frames.push({
      type: bytes.readUInt16LE(at + 4),
      flags: bytes.readUInt16LE(at + 6),
      sequence: bytes.readUInt32LE(at + 8),
      family: bytes.readUInt8(at + 16),
      resource: bytes.readUInt16BE(at + 18),
      attributes: new Attributes(bytes, at + HEADER, at + length),
    });
    at += (length + 3) & ~3;
  }
  return frames;
}

function decodeRequest({ type, flags, sequence, family: number, attributes: of }: Frame): NftRequest {
  const family = number === FAMILY_NUMBERS.ip ? "ip" : "ip6";
  const change = decodeChange(type, of, family);
  const table = of.text(TABLE_NAME);
  if (change === undefined || table === undefined || number !== FAMILY_NUMBERS[family])
    throw new UnreadableNft(`message ${sequence}: its type ${type}, its family ${number} or its table is not known`);
  if (change.kind.startsWith("add") && (flags & FLAGS.create) === 0)
    throw new UnreadableNft(`message ${sequence}: it adds without NLM_F_CREATE`);
  return { sequence, family, table, change };
}

/** The attribute of a table's name has the same number in all messages. */
const TABLE_NAME = numbers.TABLE.name;

/** @returns undefined: it is not known here */
function decodeChange(type: number, of: Attributes, family: NftFamily): NftChange | undefined {
  if (type >>> 8 !== SUBSYSTEM) return undefined;
  switch (type & 0xff) {
    case MESSAGES.newTable: {
      const comment = tableCommentOf(of);
      return { kind: "add-table", ...(comment !== undefined && { comment }) };
    }
    case MESSAGES.delTable:
      return { kind: "delete-table" };
    case MESSAGES.newChain:
      return { kind: "add-chain", chain: decodeChain(of) };
    case MESSAGES.delChain:
      return { kind: "delete-chain", name: of.text(numbers.CHAIN.name) ?? "" };
    case MESSAGES.newRule:
      return { kind: "add-rule", ...decodeRule(of, family) };
    case MESSAGES.delRule:
      return deletedRules(of);
    case MESSAGES.newSet:
      return { kind: "add-set", set: decodeSet(of) };
    case MESSAGES.delSet:
      return { kind: "delete-set", name: of.text(numbers.SET.name) ?? "" };
    case MESSAGES.newElement:
      return { kind: "add-elements", ...decodeElements(of) };
    case MESSAGES.delElement:
      return deletedElements(of);
    case MESSAGES.newFlowtable:
      return { kind: "add-flowtable", flowtable: decodeFlowtable(of) };
    case MESSAGES.delFlowtable:
      return deletedFlowtable(of);
    default:
      return undefined;
  }
}

function deletedRules(of: Attributes): NftChange {
  const [chain, handle] = [of.text(numbers.RULE.chain) ?? "", of.u64(numbers.RULE.handle)];
  return handle === undefined ? { kind: "flush-chain", name: chain } : { kind: "delete-rule", chain, handle };
}

function deletedElements(of: Attributes): NftChange {
  if (!of.has(numbers.ELEMENTS.list)) return { kind: "flush-set", name: of.text(numbers.ELEMENTS.set) ?? "" };
  const { set, elements } = decodeElements(of);
  return { kind: "delete-elements", set, keys: elements.map(({ key }) => key) };
}

function deletedFlowtable(of: Attributes): NftChange {
  const name = of.text(numbers.FLOWTABLE.name) ?? "";
  if (!of.has(numbers.FLOWTABLE.hook)) return { kind: "delete-flowtable", name };
  return { kind: "delete-devices", flowtable: name, devices: decodeDevices(of) };
}
