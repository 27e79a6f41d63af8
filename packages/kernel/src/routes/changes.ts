import { sleep, type Timers } from "@fairlead/base";
import type { Range } from "@fairlead/netfilter/netlink";
import { deviceIn, isAboutDevice } from "../links/messages.ts";
import { TYPES } from "../links/numbers.ts";
import { GROUPS, LONGEST_TOLD, type OpenListening, receiveOrLost } from "../netlink/listening.ts";
import { decodeReplies } from "../netlink/messages.ts";
import { ROUTE_PROTOCOL, type RoutingWatchOptions } from "./routes.ts";

/** RTM_NEWROUTE, RTM_DELROUTE, RTM_NEWRULE, RTM_DELRULE (linux/rtnetlink.h). */
const ROUTE_TYPES = { newRoute: 24, deleteRoute: 25, newRule: 32, deleteRule: 33 } as const;
/** rtmsg: family and destination's length in bytes, then two more; behind them, in the range: table and protocol. */
const HEADER_REST = 4;
const PROTOCOL_AT = 1;
const WHOLE_ADDRESS: Readonly<Record<number, number>> = { 2: 32, 10: 128 };

/** Milliseconds between two looks whether something was told; what comes together is one step. */
const PAUSE_MS = 1_000;

/** @throws NetlinkError when the kernel refuses; Error when koffi has no binary for this machine */
export async function* routingChanges(
  listen: OpenListening,
  timers: Timers,
  { signal, matters }: RoutingWatchOptions,
): AsyncGenerator<void, void, void> {
  const socket = await listen([...GROUPS.links, ...GROUPS.routes, ...GROUPS.rules]);
  const room = Buffer.alloc(LONGEST_TOLD);
  try {
    socket.join();
    while (!signal.aborted) {
      let changed = false;
      for (let bytes = receiveOrLost(socket, room); bytes !== undefined; bytes = receiveOrLost(socket, room)) {
        changed ||= bytes === "lost" || isChange(bytes, matters);
      }
      if (changed) yield;
      await sleep(timers, PAUSE_MS, signal);
    }
  } finally {
    socket.close();
  }
}

function isChange(bytes: Buffer, matters: RoutingWatchOptions["matters"]): boolean {
  for (const reply of decodeReplies(bytes)) {
    if (reply.kind !== "data") continue;
    const { message, attributes } = reply;
    if (message === ROUTE_TYPES.newRoute || message === ROUTE_TYPES.deleteRoute) {
      if (isOfNetwork(bytes, attributes, message)) return true;
    } else if (message === ROUTE_TYPES.newRule || message === ROUTE_TYPES.deleteRule) return true;
    else if (message !== TYPES.newLink && message !== TYPES.deleteLink) continue;
    else if (isAboutDevice(bytes, attributes) && matters(deviceIn(bytes, attributes).name)) return true;
  }
  return false;
}

/** Pods have routes to their addresses; what this process has added itself is known to it. */
function isOfNetwork(bytes: Buffer, { start }: Range, message: number): boolean {
  const [family = 0, length = 0] = bytes.subarray(start - HEADER_REST, start);
  if (length === WHOLE_ADDRESS[family]) return false;
  return message === ROUTE_TYPES.deleteRoute || bytes[start + PROTOCOL_AT] !== ROUTE_PROTOCOL;
}
