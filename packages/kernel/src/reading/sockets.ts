import { nftNumbers } from "@fairlead/netfilter/nft";
import { TYPES as SETS } from "../ipset/numbers.ts";
import { COMMANDS } from "../ipvs/numbers.ts";
import { TYPES } from "../links/numbers.ts";
import type { NetlinkSocket } from "../netlink/socket.ts";

/** What is asked by netlink: the type of a message, and of generic netlink the command. */
export interface NetlinkRequest {
  readonly type: number;
  readonly command: number;
}

/** GENL_ID_CTRL and CTRL_CMD_GETFAMILY (linux/genetlink.h): the number of a family. */
const CONTROLLER = 0x10;
const GET_FAMILY = 3;
/** Families of generic netlink are numbered from here on (GENL_MIN_ID). */
const FIRST_FAMILY = 0x10;

const { MESSAGES, SUBSYSTEM } = nftNumbers;
const NFT_READS: ReadonlySet<number> = new Set(
  [
    MESSAGES.getTable,
    MESSAGES.getChain,
    MESSAGES.getRule,
    MESSAGES.getSet,
    MESSAGES.getElement,
    MESSAGES.getFlowtable,
    MESSAGES.getGeneration,
  ].map((message) => (SUBSYSTEM << 8) | message),
);
const LINK_READS: ReadonlySet<number> = new Set([TYPES.getLink, TYPES.getAddress]);
const IPVS_READS: ReadonlySet<number> = new Set([COMMANDS.getService, COMMANDS.getDestination]);

/** Of nf_tables, by nfnetlink. */
export const readsNftables = ({ type }: NetlinkRequest) => NFT_READS.has(type);
/** Of sets and their members, by nfnetlink. */
export const readsSets = ({ type }: NetlinkRequest) => type === SETS.list;
/** Of devices and their addresses, by rtnetlink. */
export const readsLinks = ({ type }: NetlinkRequest) => LINK_READS.has(type);
/** Of virtual servers, by generic netlink. */
export const readsServers = ({ type, command }: NetlinkRequest) =>
  type === CONTROLLER ? command === GET_FAMILY : type > FIRST_FAMILY && IPVS_READS.has(command);

/** nlmsghdr: length, type; the command is the first byte after it. */
const TYPE_AT = 4;
const COMMAND_AT = 16;

/**
 * The same socket, which sends nothing but what only reads: its user cannot change the kernel, by mistake or
 * otherwise.
 *
 * @throws WritesRefused when it is asked to send anything else
 */
export function readingOnly<Socket extends NetlinkSocket>(
  open: () => Promise<Socket>,
  reads: (asked: NetlinkRequest) => boolean,
): () => Promise<Socket> {
  return async () => {
    const socket = await open();
    const send = async (messages: Uint8Array) => {
      for (const asked of askedIn(messages)) if (!reads(asked)) throw new WritesRefused(asked);
      return socket.send(messages);
    };
    return { ...socket, send };
  };
}

/** Something tried to write through a reader: a fault of the program, which the kernel did not see. */
export class WritesRefused extends Error {
  override readonly name = "WritesRefused";

  constructor({ type, command }: NetlinkRequest) {
    super(`netlink: message ${type}, command ${command} may change the kernel; only reads are allowed here`);
  }
}

function* askedIn(messages: Uint8Array): Generator<NetlinkRequest> {
  const view = new DataView(messages.buffer, messages.byteOffset, messages.byteLength);
  for (let at = 0; at < messages.length; ) {
    const length = view.getUint32(at, true);
    if (length <= COMMAND_AT || at + length > messages.length)
      throw new RangeError("netlink: a message without an end");
    yield { type: view.getUint16(at + TYPE_AT, true), command: view.getUint8(at + COMMAND_AT) };
    at += (length + 3) & ~3;
  }
}
