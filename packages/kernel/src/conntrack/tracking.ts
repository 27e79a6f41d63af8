/** Follows connections as events say them: by netlink, or by `conntrack -E`. */

import { IP_FAMILIES, sleep, slices, systemClock, type Timers } from "@fairlead/base";
import type { IPFamily, Protocol } from "../family.ts";
import {
  GROUPS,
  type ListeningSocket,
  type OpenListening,
  openListening,
  receiveOrLost,
} from "../netlink/listening.ts";
import { decodeReplies } from "../netlink/messages.ts";
import { datagrams } from "../netlink/requests.ts";
import { DATAGRAM_SIZE, type OpenNetlink, openNetfilterSocket } from "../netlink/socket.ts";
import { CommandError, lines, type Runner } from "../runner.ts";
import { Zones } from "./conntrack.ts";
import {
  type Connection,
  type ConnectionEvent,
  parseConnection,
  parseConnectionEvent,
  type Tracking,
} from "./flows.ts";
import { decodeConnection, encodeDump } from "./messages.ts";

/** How connection tracking is read and listened to. */
export interface TrackingOptions {
  /** How netlink is reached; default: in the network namespace of this process. */
  readonly open?: OpenNetlink;
  /** How events are listened to; default: in the network namespace of this process. */
  readonly listen?: OpenListening;
}

/**
 * What is tracked in the network namespace of this process: by netlink, and where that cannot be had by
 * conntrack-tools.
 */
export async function openTracking(runner: Runner, options: TrackingOptions = {}): Promise<Tracking> {
  const { open = openNetfilterSocket, listen = openListening } = options;
  try {
    await (await open()).close();
    return createNetlinkTracking({ open, listen, timers: systemClock });
  } catch {
    return createTrackingTools(runner);
  }
}

/** Asks conntrack-tools, here or wherever the runner starts programs. */
export function createTrackingTools(runner: Runner): Tracking {
  return {
    async *list() {
      for (const family of IP_FAMILIES) {
        for (const protocol of ["TCP", "UDP", "SCTP"] as const) yield* listConnections(runner, family, protocol);
      }
    },
    // One process for both: without -f it reports all families.
    follow: async (signal) => followed(runner, signal),
  };
}

/**
 * The connections of a family and protocol in zone 0 as they are read; of one client where `source` is given.
 *
 * @throws CommandError when the tool is missing, not permitted or fails
 */
export async function* listConnections(
  runner: Runner,
  family: IPFamily,
  protocol: Protocol,
  { source }: { readonly source?: string } = {},
): AsyncGenerator<Connection, void, void> {
  const about = source === undefined ? [] : ["--orig-src", source];
  const argv = ["conntrack", "-L", "-f", family.toLowerCase(), "-p", protocol.toLowerCase(), ...about] as const;
  for await (const line of lines(runner.stream([...argv]))) {
    const connection = parseConnection(line, family);
    if (connection !== undefined) yield connection;
  }
}

const PROTOCOLS = ["TCP", "UDP", "SCTP"] as const satisfies readonly Protocol[];
/** Milliseconds between two checks for messages of the kernel. */
const PAUSE_MS = 100;

interface NetlinkTrackingOptions {
  readonly open: OpenNetlink;
  readonly listen: OpenListening;
  readonly timers: Timers;
}

/** Talks to the kernel by itself. */
function createNetlinkTracking({ open, listen, timers }: NetlinkTrackingOptions): Tracking {
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

/** What the kernel has reported until now, in turns. */
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

async function* followed(runner: Runner, signal: AbortSignal): AsyncGenerator<ConnectionEvent, void, void> {
  try {
    for await (const line of lines(runner.stream(["conntrack", "-E"], { timeoutMs: 0, signal }))) {
      const event = parseConnectionEvent(line, familyIn(line));
      if (event !== undefined) yield event;
    }
  } catch (error) {
    if (!signal.aborted || !(error instanceof CommandError)) throw error;
  }
}

function familyIn(line: string): IPFamily {
  return / src=[\d.]+ /.test(line) ? "IPv4" : "IPv6";
}
