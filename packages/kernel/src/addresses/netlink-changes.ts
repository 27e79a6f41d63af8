import { sleep, slices, type Timers } from "@fairlead/base";
import { addressIn, deviceIn, encodeDeviceDump, indexIn, isAboutDevice } from "../links/messages.ts";
import { TYPES } from "../links/numbers.ts";
import { list } from "../netlink/list.ts";
import { GROUPS, type ListeningSocket, LONGEST_TOLD, type OpenListening, receiveOrLost } from "../netlink/listening.ts";
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
  const room = Buffer.alloc(LONGEST_TOLD);
  // A sync in ipvs mode adds thousands of addresses.
  const yielding = slices();
  try {
    while (!signal.aborted) {
      for (let bytes = receiveOrLost(socket, room); bytes !== undefined; bytes = receiveOrLost(socket, room)) {
        if (bytes === "lost") yield undefined;
        else yield* changesIn(bytes, names);
        await yielding();
      }
      await sleep(timers, PAUSE_MS, signal);
    }
  } finally {
    socket.close();
  }
}

async function deviceNames(open: OpenNetlink): Promise<Map<number, string>> {
  const socket = await open();
  try {
    const names = await list(socket, encodeDeviceDump(), "reading devices", (bytes, message) => [
      [indexIn(bytes, message), deviceIn(bytes, message).name] as const,
    ]);
    return new Map(names);
  } finally {
    await socket.close();
  }
}

function* changesIn(bytes: Buffer, names: Map<number, string>): Generator<AddressChange, void, void> {
  for (const reply of decodeReplies(bytes)) {
    const change = changeIn(bytes, reply, names);
    if (change !== undefined) yield change;
  }
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
