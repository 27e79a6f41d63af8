/** The ipset client, by netlink. */

import { ADDRESS_BITS, addressBytes, bytesText, familyOf, nextTurn, parseAddress, slices } from "@fairlead/base";
import {
  type RefusedCommand,
  RefusedCommands,
  renderSetCommand,
  type SetCommand,
  SetReader,
  type SetState,
} from "@fairlead/netfilter";
import { attribute, attributesIn, findAttribute, nest, type Range } from "@fairlead/netfilter/netlink";
import { NetlinkError } from "./netlink/listening.ts";
import { ADDRESS_FAMILIES, encodeRequest, FLAGS } from "./netlink/messages.ts";
import { AT_ONCE, list, refusedOf, sendTogether } from "./netlink/requests.ts";
import type { NetlinkSocket, OpenNetlink } from "./netlink/socket.ts";
import { lines, type Runner, read, runCommands, type Turn } from "./runner.ts";

/** The ipsets of this network namespace. */
export interface IpsetClient {
  /**
   * `ipset save`, set by set as it is read; of named sets, which are asked for by netlink where it can be had, those
   * that are there. Their types must be ones that have a name here (`SetType`).
   *
   * @throws CommandError when the tool is missing, not permitted, or the kernel has no ipset
   * @throws NetlinkError when the kernel refuses
   */
  save(names?: Iterable<string>): AsyncIterable<SetState>;
  /**
   * Does these commands as one `ipset -exist restore`, or without a process where few members change: what is there
   * already, or gone, is no error. No transaction.
   *
   * @param turn gives the event loop its turn now and then; default `nextTurn`
   * @throws CommandError without netlink, for the first command that fails. Those before it count, but for additions
   *   (deletions) to one set that stand right before one that the tool itself refuses: it had not sent those yet
   * @throws RefusedCommands when the kernel refused some members, where netlink is at hand; all other commands count
   */
  change(commands: readonly SetCommand[], turn?: Turn): Promise<void>;
}

/** How ipsets are reached. */
export interface IpsetOptions {
  /**
   * How netlink is reached in the network namespace of this process, for changes of few members, which then start no
   * process. Where it cannot be had, and by default: `ipset` for everything.
   */
  readonly open?: OpenNetlink;
}

/** The client of ipset. */
export function createIpset(runner: Runner, { open }: IpsetOptions = {}): IpsetClient {
  let missing = open === undefined;
  const opened = async (way: OpenNetlink) => {
    const socket = await way().catch(() => undefined);
    missing = socket === undefined;
    return socket;
  };
  return {
    save: async function* (names) {
      const socket = names === undefined || missing || open === undefined ? undefined : await opened(open);
      if (names !== undefined && socket !== undefined) yield* namedSets(socket, names);
      else yield* chosen(read(lines(runner.stream(["ipset", "save"])), new SetReader()), names);
    },
    change: async (commands, turn) => {
      const byTool = (some: readonly SetCommand[]) =>
        runCommands(runner, ["ipset", "-exist", "restore"], some, renderSetCommand, turn);
      const byNetlink = !missing && open !== undefined && (await opened(open));
      if (!byNetlink) return void (await byTool(commands));
      try {
        const members = fewMembers(commands);
        if (members !== undefined) return await changeMembers(byNetlink, members, turn);
        await byTool(commands).catch((error: unknown) => goOn(byNetlink, commands, error, byTool, turn));
      } finally {
        await byNetlink.close();
      }
    },
  };
}

/** The tool stops at the first line that fails; by netlink each gets its own answer. Repeating one is no error. */
async function goOn(
  socket: NetlinkSocket,
  commands: readonly SetCommand[],
  error: unknown,
  byTool: (some: readonly SetCommand[]) => Promise<unknown>,
  turn: Turn | undefined,
): Promise<void> {
  const members = commands.filter((command) => "member" in command);
  if (members.length === 0) throw error;
  const others = commands.filter((command) => !("member" in command));
  if (others.length > 0) await byTool(others);
  await changeMembers(socket, members, turn);
}

/** @throws RefusedCommands when the kernel refused some; all others count */
async function changeMembers(
  socket: NetlinkSocket,
  members: readonly MemberCommand[],
  turn: Turn = nextTurn,
): Promise<void> {
  const refused: RefusedCommand<SetCommand>[] = [];
  const yielding = slices({ turn });
  for (let at = 0; at < members.length; at += AT_ONCE) {
    const together = members.slice(at, at + AT_ONCE);
    const refusals = await sendTogether(socket, together.map(encodeMember));
    refused.push(...refusedOf(refusals, together, (command) => `ipset: ${renderSetCommand(command)}`, setError));
    const turned = yielding();
    if (turned !== undefined) await turned;
  }
  if (refused.length > 0) throw new RefusedCommands(refused);
}

/** Errors of ipset itself (IPSET_ERR_TYPE_SPECIFIC, linux/netfilter/ipset/ip_set.h and ip_set_hash.h). */
const SET_ERRORS: Readonly<Record<number, string>> = {
  4097: "the kernel speaks another protocol of ipset",
  4098: "the kernel does not know the type of set",
  4099: "no more sets can be made",
  4100: "the set is in use",
  4352: "the set is full",
};

const setError = (errno: number) => SET_ERRORS[errno];

type MemberCommand = Extract<SetCommand, { readonly member: string }>;

/** Attributes of a message, those of a member or a set within `data`, and those of an address (the same header). */
const REQUEST = { protocol: 1, set: 2, type: 3, family: 5, data: 7, members: 8 } as const;

/** Spoken since kernel 2.6.39. */
const PROTOCOL_VERSION = 6;

/**
 * One member to add or to delete; what is there already, or gone, is no error.
 *
 * @throws RangeError for a member that is not an address, a port, `address,protocol:port` and that with an address
 * or
 *   network behind it
 */
export function encodeMember({ kind, set, member }: MemberCommand): Buffer {
  const attributes = [
    attribute(REQUEST.protocol, Buffer.from([PROTOCOL_VERSION])),
    attribute(REQUEST.set, Buffer.from(`${set}\0`)),
    nest(REQUEST.data, ...memberParts(member)),
  ];
  return encodeRequest({
    type: IPSET_TYPES[kind],
    flags: FLAGS.request,
    addressFamily: 0,
    attributes: Buffer.concat(attributes),
  });
}

export function encodeSetDump(set: string): Buffer {
  const attributes = [
    attribute(REQUEST.protocol, Buffer.from([PROTOCOL_VERSION])),
    attribute(REQUEST.set, Buffer.from(`${set}\0`)),
  ];
  return encodeRequest({
    type: IPSET_TYPES.list,
    flags: FLAGS.request | FLAGS.dump,
    addressFamily: 0,
    attributes: Buffer.concat(attributes),
  });
}

/** IPSET_CMD_LIST, IPSET_CMD_ADD and IPSET_CMD_DEL of NFNL_SUBSYS_IPSET (linux/netfilter/ipset/ip_set.h). */
export const IPSET_TYPES = { list: 0x607, add: 0x609, del: 0x60a } as const;

/** Up to so many members go by netlink, one message each; the tool puts more of them into one. */
const FEW = 2_000;

/** The commands where they are few, and all of them about members. */
function fewMembers(commands: readonly SetCommand[]): readonly MemberCommand[] | undefined {
  if (commands.length > FEW) return undefined;
  const members = commands.filter((command) => "member" in command);
  return members.length === commands.length ? members : undefined;
}

async function* chosen(sets: AsyncIterable<SetState>, names: Iterable<string> | undefined): AsyncGenerator<SetState> {
  const wanted = names && new Set(names);
  for await (const set of sets) if (wanted === undefined || wanted.has(set.name)) yield set;
}

/** One after the other: there is one dump at a time on a socket, which it closes. */
async function* namedSets(socket: NetlinkSocket, names: Iterable<string>): AsyncGenerator<SetState> {
  try {
    for (const name of names) {
      const set = await dumpSet(socket, name);
      if (set !== undefined) yield set;
    }
  } finally {
    await socket.close();
  }
}

async function dumpSet(socket: NetlinkSocket, name: string): Promise<SetState | undefined> {
  try {
    let set: Omit<SetState, "members"> | undefined;
    const members = await list(socket, encodeSetDump(name), `reading ipset ${name}`, (bytes, message) => {
      set ??= decodeSet(bytes, message);
      return [...decodeMembers(bytes, message)];
    });
    return set && { ...set, members: new Set(members) };
  } catch (error) {
    if (error instanceof NetlinkError && error.code === "ENOENT") return undefined;
    throw error;
  }
}

/** NLA_F_NET_BYTEORDER, which addresses and ports must carry. */
const IN_NETWORK_ORDER = 0x4000;

const FORM =
  /^(?<address>[0-9a-f.:]+?)(?:,(?<protocol>tcp|udp|sctp):(?<port>\d+)(?:,(?<second>[0-9a-f.:]+)(?:\/(?<length>\d+))?)?)?$/;

const PART = { address: 1, port: 4, protocol: 7, second: 20, secondLength: 21 } as const;

const PROTOCOL_NUMBERS: Readonly<Record<string, number>> = { tcp: 6, udp: 17, sctp: 132 };

function memberParts(member: string): readonly Buffer[] {
  if (/^\d+$/.test(member)) return [portPart(member)];
  const found = FORM.exec(member)?.groups;
  if (found?.["address"] === undefined) throw new RangeError(`not a member of a set: ${member}`);
  const { protocol, port, second, length } = found;
  return [
    addressPart(PART.address, found["address"]),
    ...(protocol && port
      ? [attribute(PART.protocol, Buffer.from([PROTOCOL_NUMBERS[protocol] ?? 0])), portPart(port)]
      : []),
    ...(second ? [addressPart(PART.second, second)] : []),
    ...(length ? [attribute(PART.secondLength, Buffer.from([Number(length)]))] : []),
  ];
}

const ADDRESS = { IPv4: 1, IPv6: 2 } as const;

/** @throws RangeError when it is not an address */
function addressPart(type: number, text: string): Buffer {
  if (parseAddress(text) === undefined) throw new RangeError(`not an address in a member of a set: ${text}`);
  const bytes = addressBytes(text);
  const family = bytes.length === 4 ? ADDRESS.IPv4 : ADDRESS.IPv6;
  return nest(type, attribute(family | IN_NETWORK_ORDER, bytes));
}

function portPart(text: string): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(Number(text));
  return attribute(PART.port | IN_NETWORK_ORDER, bytes);
}

/** A set as the first message about it describes it; undefined for messages that only have more members. */
function decodeSet(bytes: Buffer, message: Range): Omit<SetState, "members"> | undefined {
  const [name, type] = [REQUEST.set, REQUEST.type].map((kind) => findAttribute(bytes, message, kind));
  if (name === undefined || type === undefined) return undefined;
  const family = findAttribute(bytes, message, REQUEST.family);
  const number = family && bytes.readUInt8(family.start);
  return {
    name: textAt(bytes, name),
    type: textAt(bytes, type),
    ...(number === ADDRESS_FAMILIES.IPv4 && { family: "IPv4" }),
    ...(number === ADDRESS_FAMILIES.IPv6 && { family: "IPv6" }),
  };
}

/** The members in a message, as `ipset save` prints those of sets of addresses and ports. */
function* decodeMembers(bytes: Buffer, message: Range): Generator<string, void, void> {
  const members = findAttribute(bytes, message, REQUEST.members);
  if (members === undefined) return;
  for (const member of attributesIn(bytes, members)) {
    if (member.type === REQUEST.data) yield memberText(bytes, member);
  }
}

function memberText(bytes: Buffer, member: Range): string {
  const found = new Map(Array.from(attributesIn(bytes, member), (one) => [one.type, one]));
  const first = addressIn(bytes, found.get(PART.address));
  const second = addressIn(bytes, found.get(PART.second));
  const port = found.get(PART.port);
  const number = port && bytes.readUInt16BE(port.start);
  if (first === undefined) return String(number);
  const served = number === undefined ? [] : [`${protocolText(bytes, found.get(PART.protocol))}:${number}`];
  const network = second === undefined ? [] : [second + lengthText(bytes, found.get(PART.secondLength), second)];
  return [first, ...served, ...network].join(",");
}

function addressIn(bytes: Buffer, range: Range | undefined): string | undefined {
  const [inner] = range === undefined ? [] : attributesIn(bytes, range);
  return inner && bytesText(bytes.subarray(inner.start, inner.end));
}

/** A single host has none. */
function lengthText(bytes: Buffer, range: Range | undefined, address: string): string {
  const length = range && bytes.readUInt8(range.start);
  return length === undefined || length === ADDRESS_BITS[familyOf(address)] ? "" : `/${length}`;
}

function protocolText(bytes: Buffer, range: Range | undefined): string {
  const number = range && bytes.readUInt8(range.start);
  return Object.keys(PROTOCOL_NUMBERS).find((name) => PROTOCOL_NUMBERS[name] === number) ?? String(number);
}

/** Texts end with a zero byte. */
function textAt(bytes: Buffer, { start, end }: Range): string {
  return bytes.toString("latin1", start, end - 1);
}
