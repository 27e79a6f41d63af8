import { Attributes } from "../../netlink/reader.ts";
import { FAMILY_NUMBERS, type NftFamily } from "../family.ts";
import type { Hex } from "../hex.ts";
import type { NftChain, NftFlowtable, NftRule, NftSet, SetElement } from "../model.ts";
import { decodeChain, decodeElements, decodeRule, decodeSet, tableCommentOf, UnreadableNft } from "./decode.ts";
import { decodeDevices, decodeFlowtable } from "./flowtables.ts";
import * as numbers from "./numbers.ts";

const { BATCH, FLAGS, MESSAGES, SUBSYSTEM } = numbers;

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
