import { sleep, slices, systemClock, type Timers } from "@fairlead/base";
import {
  decodeTrace,
  type NftBatch,
  type NftChain,
  type NftFamily,
  type NftTraceEvent,
  nftNumbers,
} from "@fairlead/netfilter/nft";
import {
  GROUPS,
  type ListeningSocket,
  LONGEST_TOLD,
  type OpenListening,
  openListening,
  receiveOrLost,
} from "../netlink/listening.ts";
import { decodeReplies } from "../netlink/messages.ts";
import { type OpenTransactions, openTransactionSocket } from "../netlink/socket.ts";
import { attributes } from "./listing.ts";
import { type RuleWithSets, readChain, readRule, type TablePlace } from "./one-object.ts";
import { send } from "./send.ts";

/** What the kernel reports of the packets whose way it is to tell. */
export interface PacketTracing {
  /** Until the signal aborts. lost: there was more than could be kept. */
  events(signal: AbortSignal): AsyncIterable<NftTraceEvent | "lost">;
  /**
   * A rule as it is now.
   *
   * @param ip the family of the packets whose headers it reads
   * @returns undefined: it is gone
   */
  rule(
    place: TablePlace & { readonly chain: string },
    handle: bigint,
    ip: NftFamily,
  ): Promise<RuleWithSets | undefined>;
  /** @returns undefined: there is no such chain, or none that is known here */
  chain(place: TablePlace, name: string): Promise<Omit<NftChain, "rules"> | undefined>;
  /** A table that belongs to the socket is gone after that. */
  close(): Promise<void>;
}

/** How traces are asked for. */
export interface PacketTracingOptions {
  /** How netlink is reached. Default: in the network namespace of this process. */
  readonly open?: OpenTransactions;
  /** How the kernel is listened to. Default: in the network namespace of this process. */
  readonly listen?: OpenListening;
  /** Timers of its waits; default: those of the process. */
  readonly timers?: Timers;
}

/**
 * Listens to what the kernel reports of packets and writes what has it tell: a table of its own that belongs to the
 * socket (`addTable(…, true)`) goes with it, however the process ends.
 *
 * @throws NftablesError when the kernel refuses the table; NetlinkError when it has no nfnetlink; Error when koffi has
 *   no binary for this machine
 */
export async function openPacketTracing(batch: NftBatch, options: PacketTracingOptions = {}): Promise<PacketTracing> {
  const { open = openTransactionSocket, listen = openListening, timers = systemClock } = options;
  const listening = await listen(GROUPS.nftrace);
  const socket = await open();
  const close = async () => {
    listening.close();
    await socket.close();
  };
  try {
    listening.join();
    await send(socket, batch, batch.finish());
  } catch (error) {
    await close();
    throw error;
  }
  return {
    events: (signal) => eventsOf(listening, timers, signal),
    rule: (place, handle, ip) => readRule(socket, place, { chain: place.chain, handle }, ip),
    chain: (place, name) => readChain(socket, place, name),
    close,
  };
}

/** Milliseconds between two looks whether something was told. */
const PAUSE_MS = 50;

async function* eventsOf(
  socket: ListeningSocket,
  timers: Timers,
  signal: AbortSignal,
): AsyncGenerator<NftTraceEvent | "lost", void, void> {
  const room = Buffer.alloc(LONGEST_TOLD);
  const yielding = slices();
  while (!signal.aborted) {
    const bytes = receiveOrLost(socket, room);
    if (bytes === undefined) await sleep(timers, PAUSE_MS, signal);
    else if (bytes === "lost") yield bytes;
    else yield* told(bytes);
    await yielding();
  }
}

const { MESSAGES, SUBSYSTEM } = nftNumbers;
const TRACE_MESSAGE = (SUBSYSTEM << 8) | MESSAGES.trace;
/** Bytes of nfgenmsg, of which the first one is the family, before the attributes. */
const FAMILY_BEFORE = 4;

function* told(bytes: Buffer): Generator<NftTraceEvent, void, void> {
  for (const reply of decodeReplies(bytes)) {
    if (reply.kind !== "data" || reply.message !== TRACE_MESSAGE) continue;
    const family = bytes[reply.attributes.start - FAMILY_BEFORE] ?? 0;
    const event = decodeTrace(attributes(bytes, reply.attributes), family);
    if (event !== undefined) yield event;
  }
}
