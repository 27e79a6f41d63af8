import { errorCode, sleep, slices, type Timers } from "@fairlead/base";
import { addressIn, deviceIn, encodeDeviceDump, indexIn, isAboutDevice } from "../links/messages.ts";
import { TYPES } from "../links/numbers.ts";
import { dump } from "../netlink/dump.ts";
import { GROUPS, type ListeningSocket, type OpenListening } from "../netlink/listening.ts";
import { decodeReplies, type Reply } from "../netlink/messages.ts";
import type { OpenNetlink } from "../netlink/socket.ts";
import type { AddressChange } from "./change.ts";

/** How rtnetlink is reached. */
interface RouteNetlink {
  /** For what is told. */
  readonly listen: OpenListening;
  /** For what is asked. */
  readonly open: OpenNetlink;
}

/** Milliseconds between two looks whether something was told: a system call each, also in an idle minute. */
const PAUSE_MS = 1_000;
/** Longest datagram that the kernel tells something with (NLMSG_GOODSIZE, and single messages may be larger). */
const LONGEST = 1 << 16;

/**
 * Begins to hear of addresses and devices.
 *
 * @returns what is told from now on, until the signal aborts; undefined: something was told that could not be kept
 * @throws NetlinkError when the kernel refuses; Error when koffi has no binary for this machine
 */
export async function hearChanges(
  { listen, open }: RouteNetlink,
  timers: Timers,
  signal: AbortSignal,
): Promise<AsyncIterable<AddressChange | undefined>> {
  const socket = await listen([...GROUPS.links, ...GROUPS.addresses]);
  try {
    socket.join();
    return heard(socket, await deviceNames(open), timers, signal);
  } catch (error) {
    socket.close();
    throw error;
  }
}

async function* heard(
  socket: ListeningSocket,
  names: Map<number, string>,
  timers: Timers,
  signal: AbortSignal,
): AsyncGenerator<AddressChange | undefined, void, void> {
  const room = Buffer.alloc(LONGEST);
  // A sync in ipvs mode adds thousands of addresses.
  const yielding = slices();
  try {
    while (!signal.aborted) {
      for (let bytes = receive(socket, room); bytes !== undefined; bytes = receive(socket, room)) {
        if (bytes.length === 0) yield undefined;
        for (const reply of decodeReplies(bytes)) {
          const change = changeIn(bytes, reply, names);
          if (change !== undefined) yield change;
        }
        await yielding();
      }
      await sleep(timers, PAUSE_MS, signal);
    }
  } finally {
    socket.close();
  }
}

/** Nothing in a datagram: something was lost. */
function receive(socket: ListeningSocket, room: Buffer): Buffer | undefined {
  try {
    return socket.receive(room);
  } catch (error) {
    if (errorCode(error) !== "ENOBUFS") throw error;
    return Buffer.alloc(0);
  }
}

async function deviceNames(open: OpenNetlink): Promise<Map<number, string>> {
  const names = new Map<number, string>();
  const socket = await open();
  try {
    await dump(socket, encodeDeviceDump(), "reading devices", (bytes, message) => {
      names.set(indexIn(bytes, message), deviceIn(bytes, message).name);
    });
  } finally {
    await socket.close();
  }
  return names;
}

/** @param names of devices by their numbers; kept up */
function changeIn(bytes: Buffer, reply: Reply, names: Map<number, string>): AddressChange | undefined {
  if (reply.kind !== "data") return undefined;
  const { message, attributes } = reply;
  const index = indexIn(bytes, attributes);
  if (message === TYPES.newAddress || message === TYPES.deleteAddress) {
    const address = addressIn(bytes, attributes);
    // A name that is not known is no service device's: that one is there before its addresses are.
    const device = names.get(index) ?? "";
    return address === undefined ? undefined : { device, gone: message === TYPES.deleteAddress, address };
  }
  if (!isAboutDevice(bytes, attributes)) return undefined;
  const { name: device } = deviceIn(bytes, attributes);
  const gone = message === TYPES.deleteLink;
  if (gone) names.delete(index);
  else names.set(index, device);
  return { device, gone };
}
