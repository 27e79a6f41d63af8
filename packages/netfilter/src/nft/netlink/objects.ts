/** Attributes of sets, elements, expressions and flowtables in netlink messages. */

import { type Attributes, type AttributeWriter, aligned, HEADER, NESTED } from "../../netlink/attributes.ts";
import { encodeVerdict } from "../expressions/operations.ts";
import { type Expression, kindOf } from "../expressions/table.ts";
import { type NftFlowtable, type NftSet, SET_FLAGS, type SetElement } from "../model.ts";
import { bytesOf, type DataType, type Hex, hexOf, lengthOf, type NftFamily, OBJECT_TYPES, typeId } from "../types.ts";
import * as numbers from "./numbers.ts";
import { DATA_VALUE, ELEMENT, LIST_ITEM } from "./numbers.ts";

/** An item of a rule's list. */
export function writeExpression(expression: Expression, to: AttributeWriter): void {
  const kind = kindOf(expression);
  to.text(numbers.EXPRESSION.name, kind.name);
  to.nest(numbers.EXPRESSION.data, (data) => kind.encode(expression, data));
}

export function writeElement(element: SetElement, to: AttributeWriter): void {
  const { key, value, object, intervalEnd, timeout, expires, comment } = element;
  to.nest(numbers.ELEMENT.key, (inner) => inner.hex(numbers.DATA_VALUE, key));
  if (value !== undefined) {
    to.nest(numbers.ELEMENT.data, (inner) => {
      if (typeof value === "string") inner.hex(numbers.DATA_VALUE, value);
      else encodeVerdict(value, inner);
    });
  }
  if (intervalEnd) to.u32(numbers.ELEMENT.flags, numbers.INTERVAL_END);
  if (timeout !== undefined) to.u64(numbers.ELEMENT.timeout, BigInt(timeout));
  if (expires !== undefined) to.u64(numbers.ELEMENT.expiration, BigInt(expires));
  if (object !== undefined) to.text(numbers.ELEMENT.object, object);
  if (comment !== undefined) to.hex(numbers.ELEMENT.userData, commentData("element", comment));
}

/** What NFT_MSG_NEWSET says of a set behind its table and name: flags, types, limits and what nft remembers of it. */
export function writeSet(set: Omit<NftSet, "elements">, id: number, family: NftFamily, to: AttributeWriter): void {
  const flags = set.flags.reduce((bits, flag) => bits | SET_FLAGS[flag], set.data === undefined ? 0 : SET_FLAGS.map);
  const { objects } = set;
  to.u32(numbers.SET.flags, objects === undefined ? flags : flags | numbers.SET_OBJECT)
    .u32(numbers.SET.keyType, typeId(set.key))
    .u32(numbers.SET.keyLength, lengthOf(set.key));
  if (set.data === "verdict") to.u32(numbers.SET.dataType, numbers.VERDICT_TYPE);
  else if (set.data !== undefined)
    to.u32(numbers.SET.dataType, typeId(set.data)).u32(numbers.SET.dataLength, lengthOf(set.data));
  if (objects !== undefined) to.u32(numbers.SET.objectType, OBJECT_TYPES[objects]);
  to.u32(numbers.SET.id, id);
  if (set.timeout !== undefined) to.u64(numbers.SET.timeout, BigInt(set.timeout));
  const { size } = set;
  if (size !== undefined) to.nest(numbers.SET.description, (inner) => inner.u32(numbers.SET_DESCRIPTION.size, size));
  const userData = set.userData ?? setUserData(set, family);
  if (userData !== "") to.hex(numbers.SET.userData, userData);
}

/**
 * The item of a set's list for an element that has a key and a value of bytes and nothing more; undefined: it has more.
 * Nearly all elements are such. Many of them as one text cost a start a third of what their attributes cost one by one:
 * native code makes the bytes.
 */
export function plainElement(element: SetElement): Hex | undefined {
  const { key, value, object, intervalEnd, timeout, expires, comment } = element;
  if (typeof value !== "string" || object !== undefined || intervalEnd !== undefined) return undefined;
  if (timeout !== undefined || expires !== undefined || comment !== undefined) return undefined;
  const { before, between, behind } = frameOf(key.length, value.length);
  return before + key + between + value + behind;
}

const { FLOWTABLE, FLOWTABLE_HOOK } = numbers;

/** What NFT_MSG_NEWFLOWTABLE says behind the table. Where the flowtable exists, it gets the devices in addition. */
export function writeFlowtable({ name, priority, devices, counter }: NftFlowtable, to: AttributeWriter): void {
  to.text(FLOWTABLE.name, name);
  to.nest(FLOWTABLE.hook, (hook) => {
    hook.u32(FLOWTABLE_HOOK.number, numbers.INGRESS).u32(FLOWTABLE_HOOK.priority, priority);
    if (devices.length > 0) writeDevices(devices, hook);
  });
  if (counter) to.u32(FLOWTABLE.flags, numbers.FLOWTABLE_COUNTER);
}

/** What NFT_MSG_DELFLOWTABLE says behind the table to take only these devices out. */
export function writeGoneDevices(name: string, devices: readonly string[], to: AttributeWriter): void {
  to.text(FLOWTABLE.name, name);
  to.nest(FLOWTABLE.hook, (hook) => writeDevices(devices, hook));
}

/** A flowtable of a listing, with its devices in the kernel's order. */
export function decodeFlowtable(of: Attributes): NftFlowtable {
  const counter = ((of.u32(FLOWTABLE.flags) ?? 0) & numbers.FLOWTABLE_COUNTER) !== 0;
  return {
    name: of.text(FLOWTABLE.name) ?? "",
    priority: of.nested(FLOWTABLE.hook)?.i32(FLOWTABLE_HOOK.priority) ?? 0,
    devices: decodeDevices(of),
    ...(counter && { counter }),
  };
}

/** In the kernel's order. */
export function decodeDevices(of: Attributes): readonly string[] {
  return of.nested(FLOWTABLE.hook)?.texts(FLOWTABLE_HOOK.devices) ?? [];
}

const COMMENT = { table: 0, chain: 0, rule: 0, element: 0, set: 7 } as const;

/** Longest comment that nft takes, bytes without its zero byte (NFTNL_UDATA_COMMENT_MAXLEN). */
const LONGEST_COMMENT = 128;

/** A comment as the field of an object; what is longer than nft takes is cut. */
export function commentData(of: keyof typeof COMMENT, comment: string): Hex {
  const bytes = new TextEncoder().encode(comment).subarray(0, LONGEST_COMMENT);
  return fields([COMMENT[of], `${hexOf(bytes)}00`]);
}

/** The comment in an object's user data; undefined where there is none. */
export function commentOf(of: keyof typeof COMMENT, data: Hex | undefined): string | undefined {
  const bytes = bytesOf(data ?? "");
  for (let at = 0; at + 2 <= bytes.length; at += 2 + (bytes[at + 1] ?? 0)) {
    if (bytes[at] !== COMMENT[of]) continue;
    const content = bytes.subarray(at + 2, at + 2 + (bytes[at + 1] ?? 0));
    const end = content.indexOf(0);
    return new TextDecoder().decode(end < 0 ? content : content.subarray(0, end));
  }
  return undefined;
}

/** What is around the key and the value of elements whose keys have one length, and whose values have one. */
interface Frame {
  readonly before: Hex;
  readonly between: Hex;
  readonly behind: Hex;
}

/** Above those of any attribute, whose length has 16 bits. */
const MOST_DIGITS = 2 ** 17;

/** By the digits of a key and of a value; the sets of a table have few of them. */
const frames = new Map<number, Frame>();

function frameOf(keyDigits: number, valueDigits: number): Frame {
  const lengths = keyDigits * MOST_DIGITS + valueDigits;
  const known = frames.get(lengths);
  if (known !== undefined) return known;
  const [key, value] = [dataFrame(ELEMENT.key, keyDigits / 2), dataFrame(ELEMENT.data, valueDigits / 2)];
  const frame = {
    before: header(LIST_ITEM | NESTED, HEADER + key.length + value.length) + key.before,
    between: key.behind + value.before,
    behind: value.behind,
  };
  frames.set(lengths, frame);
  return frame;
}

function dataFrame(type: number, bytes: number) {
  const inner = HEADER + bytes;
  const length = HEADER + aligned(inner);
  return {
    length,
    before: header(type | NESTED, length) + header(DATA_VALUE, inner),
    behind: "00".repeat(aligned(inner) - inner),
  };
}

function header(type: number, length: number): Hex {
  return hexOf([length, length >> 8, type, type >> 8]);
}

function writeDevices(devices: readonly string[], hook: AttributeWriter): void {
  hook.nest(FLOWTABLE_HOOK.devices, (list) => {
    for (const device of devices) list.text(numbers.DEVICE_NAME, device);
  });
}

/**
 * What `nft` keeps with an object in the kernel, which hands it back unread: attributes of one byte each for type and
 * length (libnftnl's udata.h). Numbers are in the byte order of the machine, of which those that have kernels with
 * these tools are little-endian.
 */
type Field = readonly [type: number, content: Hex];

function fields(...list: readonly Field[]): Hex {
  return list.map(([type, content]) => hexOf([type, content.length / 2]) + content).join("");
}

function number(value: number): Hex {
  return hexOf([value & 0xff, (value >>> 8) & 0xff, (value >>> 16) & 0xff, value >>> 24]);
}

/** enum nftnl_udata_set_types. */
const SET = { keyTypeof: 3, dataTypeof: 4, dataInterval: 6 } as const;

/**
 * What a set needs alongside its types to be printed as it was meant: drawn numbers, and concatenations that have one,
 * get the expressions of which they are made. From these nft takes the byte order as well; without them slot 1 is
 * printed as 16777216.
 */
function setUserData({ key, data, comment }: Pick<NftSet, "key" | "data" | "comment">, family: NftFamily): Hex {
  const remark = comment === undefined ? "" : commentData("set", comment);
  if (!key.includes("integer") && !key.includes("random")) return remark;
  const values: readonly Field[] =
    data === undefined
      ? []
      : [[SET.dataTypeof, data === "verdict" ? expression(EXPRESSIONS.verdict, "") : typeOf(data, family)]];
  return fields([SET.keyTypeof, typeOf(key, family)], ...values, [SET.dataInterval, number(0)]) + remark;
}

/** enum expr_types of nft. */
const EXPRESSIONS = { verdict: 1, payload: 7, meta: 9, concat: 13, numgen: 23 } as const;
/** enum proto_desc_id, and the place of the field in the protocol's template. */
const PAYLOADS = {
  ip: { protocol: 12, daddr: 12 },
  ip6: { protocol: 13, daddr: 9 },
  // "th" for what a map gives, and nft 1.0.6 takes no rule for a table that has such a map.
  tcp: { protocol: 8, dport: 2 },
} as const;
const META = { mark: 3, inet_proto: 16, random: 24 } as const;
/** Any modulus does: it is only of which kind the number is. */
const NUMGEN = { random: 1, modulus: 0x1_0000 } as const;

function typeOf(types: readonly DataType[], family: NftFamily): Hex {
  const [only] = types;
  if (only !== undefined && types.length === 1) return part(only, family);
  const parts = types.map((type, at): Field => [at, part(type, family)]);
  return expression(EXPRESSIONS.concat, fields(...parts));
}

function expression(type: number, content: Hex): Hex {
  return fields([0, number(type)], [1, content]);
}

function part(type: DataType, family: NftFamily): Hex {
  switch (type) {
    case "ipv4_addr":
    case "ipv6_addr":
      return payload(PAYLOADS[family].protocol, PAYLOADS[family].daddr);
    case "inet_service":
      return payload(PAYLOADS.tcp.protocol, PAYLOADS.tcp.dport);
    case "mark":
    case "random":
    case "inet_proto":
      return expression(EXPRESSIONS.meta, fields([0, number(META[type])]));
    case "integer":
      return expression(
        EXPRESSIONS.numgen,
        fields([0, number(NUMGEN.random)], [1, number(NUMGEN.modulus)], [2, number(0)]),
      );
    default:
      throw new RangeError(`a set's key with a number that was drawn can't have ${type} in it`);
  }
}

function payload(protocol: number, field: number): Hex {
  return expression(EXPRESSIONS.payload, fields([0, number(protocol)], [1, number(field)]));
}
