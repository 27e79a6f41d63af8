/** Routes and routing rules of the agent's own, by `ip`, and their changes, by netlink. */

import { isObject, sleep, systemClock, type Timers } from "@fairlead/base";
import type { Range } from "@fairlead/netfilter/netlink";
import type { IPFamily } from "./family.ts";
import { parseIpJson } from "./ip-json.ts";
import { deviceIn, isAboutDevice, TYPES } from "./links.ts";
import { GROUPS, LONGEST_MESSAGE, type OpenListening, receiveOrLost } from "./netlink/listening.ts";
import { decodeReplies } from "./netlink/messages.ts";
import type { Argv, Runner } from "./runner.ts";

/** A route by one interface. */
export interface RouteEntry {
  /** A CIDR or address as `ip` prints it, or `default`. */
  readonly destination: string;
  /** Absent: the destination is on the link. `inet6 fe80::1` where it has an address of the other family. */
  readonly gateway?: string;
  /** By which it leads. */
  readonly interface: string;
  /** The kernel's preference among routes of one destination, the lowest first. */
  readonly metric: number;
  /** The address that the node itself sends from. */
  readonly source?: string;
  /** The gateway is taken to be on the link, whatever the addresses there. */
  readonly onLink?: true;
}

/** A rule that has packets with a mark routed by a table. */
export interface MarkRule {
  /** Rules are asked in ascending order of it. */
  readonly priority: number;
  /** The mark's bits within the mask. */
  readonly mark: number;
  /** Which bits of the mark count. */
  readonly mask: number;
  /** The routing table that it leads to. */
  readonly table: number;
}

/** A route with its table. */
export interface TableRoute extends RouteEntry {
  /** The number of the routing table. */
  readonly table: number;
}

/** What is there in one family. */
export interface RoutingState {
  /** Routes of the table `main` whose link is up; those with several next hops once for each. */
  readonly main: readonly RouteEntry[];
  /** Routes that have Fairlead's protocol number. */
  readonly own: readonly TableRoute[];
  /** Rules that have Fairlead's protocol number. */
  readonly rules: readonly MarkRule[];
}

/** One change of routes or rules. A route that is set replaces the one of its destination, table and metric. */
export type RoutingCommand =
  | { readonly kind: "set-route"; readonly route: TableRoute }
  | { readonly kind: "delete-route"; readonly route: TableRoute }
  | { readonly kind: "add-rule"; readonly rule: MarkRule }
  | { readonly kind: "delete-rule"; readonly rule: MarkRule };

/** Which changes a watch reports, and until when. */
export interface RoutingWatchOptions {
  /** Ends it. */
  readonly signal: AbortSignal;
  /** Whether it matters when an interface goes up or down. */
  readonly matters: (interfaceName: string) => boolean;
}

/** Routes and routing rules in one network namespace. All that is written has a protocol number of its own. */
export interface Routing {
  /**
   * What is there now.
   *
   * @throws CommandError when `ip` is missing or fails
   */
  read(family: IPFamily): Promise<RoutingState>;
  /**
   * Carries commands out in their order, and goes on after one that the kernel refuses.
   *
   * @throws CommandError when it refused any
   */
  write(family: IPFamily, commands: readonly RoutingCommand[]): Promise<void>;
  /**
   * A step each time that routes or rules changed, until the signal aborts. Routes to single addresses, as pod networks
   * have them, do not count.
   *
   * @throws Error when the kernel cannot be listened to
   */
  watch(options: RoutingWatchOptions): AsyncIterable<void>;
}

/** How the kernel is reached. */
export interface RoutingOptions {
  /** How rtnetlink is listened to, in the network namespace that the runner runs its processes in. */
  readonly listen: OpenListening;
  /** Default the system's. */
  readonly timers?: Timers;
}

const FLAGS: Readonly<Record<IPFamily, string>> = { IPv4: "-4", IPv6: "-6" };
/** Milliseconds that `ip` may take. */
const TIMEOUT_MS = 10_000;

/** The routing protocol (rtm_protocol of rtnetlink(7)) of what is Fairlead's: no other program has it by default. */
const ROUTE_PROTOCOL = 175;

/** Routes and rules by `ip`: they are read when the kernel says that they changed, and seldom written. */
export function createRouting(runner: Runner, { listen, timers = systemClock }: RoutingOptions): Routing {
  const show = async (family: IPFamily, ...what: readonly string[]) => {
    const argv: Argv = ["ip", "-N", "-json", FLAGS[family], ...what];
    return (await runner.run(argv, { timeoutMs: TIMEOUT_MS })).stdout;
  };
  return {
    async read(family) {
      const [main, own, rules] = await Promise.all([
        show(family, "route", "show", "table", "main"),
        show(family, "route", "show", "table", "all", "proto", String(ROUTE_PROTOCOL)),
        show(family, "rule", "show"),
      ]);
      return { main: parseRoutes(main), own: parseRoutes(own), rules: parseRules(rules) };
    },
    async write(family, commands) {
      if (commands.length === 0) return;
      const input = commands.map((command) => `${renderRouting(command)}\n`);
      await runner.run(["ip", FLAGS[family], "-force", "-batch", "-"], { input, timeoutMs: TIMEOUT_MS });
    },
    watch: (options) => routingChanges(listen, timers, options),
  };
}

/** RTM_NEWROUTE, RTM_DELROUTE, RTM_NEWRULE, RTM_DELRULE (linux/rtnetlink.h). */
const ROUTE_TYPES = { newRoute: 24, deleteRoute: 25, newRule: 32, deleteRule: 33 } as const;
/** rtmsg: family and destination's length in bytes, then two more; behind them, in the range: table and protocol. */
const HEADER_REST = 4;
const PROTOCOL_AT = 1;
const WHOLE_ADDRESS: Readonly<Record<number, number>> = { 2: 32, 10: 128 };

/** Milliseconds between two checks for messages of the kernel; what comes together is one step. */
const PAUSE_MS = 1_000;

/** @throws NetlinkError when the kernel refuses; Error when koffi has no binary for this machine */
async function* routingChanges(
  listen: OpenListening,
  timers: Timers,
  { signal, matters }: RoutingWatchOptions,
): AsyncGenerator<void, void, void> {
  const socket = await listen([...GROUPS.links, ...GROUPS.routes, ...GROUPS.rules]);
  const room = Buffer.alloc(LONGEST_MESSAGE);
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

/** What `ip -N -json route show` prints, of unicast routes whose link is up. */
function parseRoutes(json: string): readonly TableRoute[] {
  return listIn(json).flatMap((printed) => {
    const { type, dst, table, metric, prefsrc, nexthops } = printed;
    if (typeof dst !== "string" || (type !== undefined && type !== "unicast" && type !== "1")) return [];
    const common = {
      destination: dst,
      table: Number(table ?? 0),
      metric: Number(metric ?? 0),
      ...(typeof prefsrc === "string" && { source: prefsrc }),
    };
    const hops = Array.isArray(nexthops) ? nexthops.filter(isObject) : [printed];
    return hops.flatMap((hop) => {
      const place = hopOf(hop);
      return place === undefined ? [] : [{ ...common, ...place }];
    });
  });
}

function hopOf(hop: Readonly<Record<string, unknown>>): Omit<RouteEntry, "destination" | "metric"> | undefined {
  const { dev, gateway, via } = hop;
  const flags: readonly unknown[] = Array.isArray(hop["flags"]) ? hop["flags"] : [];
  // A name that is more than one word for `ip` cannot be written.
  if (typeof dev !== "string" || !/^[\w.:@-]+$/.test(dev)) return undefined;
  if (flags.includes("dead") || flags.includes("linkdown")) return undefined;
  const other = isObject(via) && typeof via["host"] === "string" ? `inet6 ${via["host"]}` : undefined;
  const next = typeof gateway === "string" ? gateway : other;
  return {
    interface: dev,
    ...(next !== undefined && { gateway: next }),
    ...(flags.includes("onlink") && { onLink: true as const }),
  };
}

/** What `ip -N -json rule show` prints, of Fairlead's. */
function parseRules(json: string): readonly MarkRule[] {
  return listIn(json).flatMap(({ priority, fwmark, fwmask, table, protocol }) => {
    if (String(protocol) !== String(ROUTE_PROTOCOL) || typeof fwmark !== "string") return [];
    const mask = typeof fwmask === "string" ? Number(fwmask) : 0xffff_ffff;
    return [{ priority: Number(priority), mark: Number(fwmark), mask, table: Number(table) }];
  });
}

function listIn(json: string): readonly Readonly<Record<string, unknown>>[] {
  const parsed = parseIpJson(json);
  return Array.isArray(parsed) ? parsed.filter(isObject) : [];
}

/** A line for `ip -force -batch -`. */
function renderRouting(command: RoutingCommand): string {
  if (command.kind === "add-rule" || command.kind === "delete-rule") {
    const { priority, mark, mask, table } = command.rule;
    const verb = command.kind === "add-rule" ? "add" : "delete";
    return `rule ${verb} priority ${priority} fwmark ${mark}/${mask} table ${table} protocol ${ROUTE_PROTOCOL}`;
  }
  const { destination, gateway, interface: device, table, metric, source, onLink } = command.route;
  const verb = command.kind === "set-route" ? "replace" : "delete";
  return [
    `route ${verb} ${destination}`,
    ...(gateway === undefined ? [] : [`via ${gateway}`]),
    `dev ${device} table ${table} protocol ${ROUTE_PROTOCOL}`,
    ...(metric === 0 ? [] : [`metric ${metric}`]),
    ...(source === undefined ? [] : [`src ${source}`]),
    ...(onLink ? ["onlink"] : []),
  ].join(" ");
}
