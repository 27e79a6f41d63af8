import { IP_FAMILIES, sleep, slices, type Timers } from "@fairlead/base";
import type { Protocol } from "../family.ts";
import { datagrams } from "../netlink/dump.ts";
import { GROUPS, type ListeningSocket, type OpenListening, receiveOrLost } from "../netlink/listening.ts";
import { decodeReplies } from "../netlink/messages.ts";
import { DATAGRAM_SIZE, type OpenNetlink } from "../netlink/socket.ts";
import type { Connection, ConnectionEvent } from "./connection.ts";
import { decodeConnection } from "./decode-connection.ts";
import { encodeDump } from "./messages.ts";
import type { Tracking } from "./tracking.ts";
import { Zones } from "./zones.ts";

const PROTOCOLS = ["TCP", "UDP", "SCTP"] as const satisfies readonly Protocol[];
/** Milliseconds between two looks whether something was told. */
const PAUSE_MS = 100;

export interface NetlinkTrackingOptions {
  readonly open: OpenNetlink;
  readonly listen: OpenListening;
  readonly timers: Timers;
}

/** Talks to the kernel by itself. */
export function createNetlinkTracking({ open, listen, timers }: NetlinkTrackingOptions): Tracking {
  const zones = new Zones();
  return {
    async *list() {
      for (const family of IP_FAMILIES) {
        for (const protocol of PROTOCOLS) {
          const dump = (named: boolean) => dumped(open, encodeDump(family, protocol, named));
          for await (const connection of zones.read(dump)) {
            // Kernels before 5.8 give those of all protocols.
            if (connection.family === family && connection.protocol === protocol) yield connection;
          }
        }
      }
    },
    async follow(signal) {
      const socket = await listen(GROUPS.conntrack);
      socket.join();
      return heard(socket, timers, signal);
    },
  };
}

async function* heard(
  socket: ListeningSocket,
  timers: Timers,
  signal: AbortSignal,
): AsyncGenerator<ConnectionEvent, void, void> {
  try {
    const room = Buffer.alloc(DATAGRAM_SIZE);
    while (!signal.aborted) {
      yield* reported(socket, room);
      await sleep(timers, PAUSE_MS, signal);
    }
  } finally {
    socket.close();
  }
}

async function* dumped(open: OpenNetlink, request: Buffer): AsyncGenerator<Connection, void, void> {
  const socket = await open();
  try {
    const room = Buffer.alloc(DATAGRAM_SIZE);
    // Never interrupted: ctnetlink_dump_table has no count of changes.
    for await (const { bytes, messages } of datagrams(socket, request, "reading conntrack entries", () => room)) {
      for (const message of messages) {
        const connection = decodeConnection(bytes, message);
        if (connection !== undefined) yield connection;
      }
    }
  } finally {
    await socket.close();
  }
}

/** What was told until now, in turns. */
async function* reported(socket: ListeningSocket, room: Buffer): AsyncGenerator<ConnectionEvent, void, void> {
  const yielding = slices();
  for (let bytes = receiveOrLost(socket, room); bytes !== undefined; bytes = receiveOrLost(socket, room)) {
    if (bytes === "lost") yield { kind: "lost" };
    else yield* eventsIn(bytes);
    await yielding();
  }
}

/** IPCTNL_MSG_CT_NEW (also what changed) and IPCTNL_MSG_CT_DELETE of NFNL_SUBSYS_CTNETLINK. */
const MESSAGES = { new: 0x100, gone: 0x102 } as const;
/** NLM_F_CREATE: it is new. */
const CREATE = 0x400;
/** From the flags of a message to its attributes: nlmsghdr's rest and nfgenmsg. */
const FLAGS_BEFORE = 14;

function* eventsIn(bytes: Buffer): Generator<ConnectionEvent, void, void> {
  for (const reply of decodeReplies(bytes)) {
    if (reply.kind !== "data") continue;
    const connection = decodeConnection(bytes, reply.attributes);
    if (connection === undefined) continue;
    const created = (bytes.readUInt16LE(reply.attributes.start - FLAGS_BEFORE) & CREATE) !== 0;
    if (reply.message === MESSAGES.gone) yield { kind: "gone", connection };
    else if (reply.message === MESSAGES.new) yield { kind: created ? "new" : "update", connection };
  }
}
