/** Reads what programs print of a node: routes, sets and recent lists. */

import { type AddressRange, addressRange, addressWords, inRange, prefixLengthOf } from "@fairlead/base";
import type { PacketSet, RouteAnswer, RouteQuery, SetQuery } from "./environment.ts";
import type { Endpoint } from "./packet.ts";

/** A route as far as it says which interface a packet leaves by. */
export interface Route {
  /** Canonical CIDR; `0.0.0.0/0` and `::/0` are the default routes. */
  readonly cidr: string;
  /** The interface that packets leave by. */
  readonly outInterface: string;
  /** The kernel's preference among routes of one CIDR, the lowest first; default 0. */
  readonly metric?: number;
}

/**
 * `Environment.outInterface` from a routing table: the longest prefix, and of several the lowest metric. What no route
 * covers is unknown; rules of policy routing are not known.
 *
 * @throws Error for a route whose CIDR cannot be read
 */
export function routing(routes: Iterable<Route>): (destination: string) => string | undefined {
  const compiled = Array.from(routes, (route) => ({ ...route, range: addressRange(route.cidr), bits: bitsOf(route) }));
  compiled.sort((a, b) => b.bits - a.bits || (a.metric ?? 0) - (b.metric ?? 0));
  const known = new Map<string, string | undefined>();
  return (destination) => {
    if (!known.has(destination)) known.set(destination, find(compiled, destination));
    return known.get(destination);
  };
}

/**
 * The query as a line for `ip -json -force -batch -` (RTM_GETROUTE): the kernel itself decides, with its rules of
 * policy routing, blackholes, forwarding settings and rp_filter.
 */
export function routeGetLine({ destination, source, inInterface, mark, protocol, sport, dport }: RouteQuery): string {
  const ports = PORTED.has(protocol) && sport !== undefined && dport !== undefined;
  return [
    `route get ${destination}`,
    ...(source === undefined ? [] : [`from ${source}`]),
    ...(inInterface === undefined ? [] : [`iif ${inInterface}`]),
    ...(mark === 0 ? [] : [`mark ${mark}`]),
    ...(ports ? [`ipproto ${protocol} sport ${sport} dport ${dport}`] : []),
  ].join(" ");
}

/** What the kernel said to a query: a route, or the text of an error. */
export type RouteGet =
  | Extract<RouteAnswer, { readonly kind: "local" | "unicast" }>
  | { readonly kind: "error"; readonly message: string };

/**
 * What `ip -json -force -batch -` printed, for each of so many lines.
 *
 * @throws SyntaxError when standard output is not JSON
 */
export function parseRouteGets(lines: number, stdout: string, stderr: string): readonly RouteGet[] {
  const errors = errorsByLine(stderr);
  const printed = stdout.split("\n").filter((line) => line.trim() !== "");
  return Array.from({ length: lines }, (_, at): RouteGet => {
    const message = errors.get(at + 1);
    if (message !== undefined) return { kind: "error", message };
    return routeIn(JSON.parse(printed.shift() ?? "[]"));
  });
}

/**
 * An ipset with its members in the form of `ipset save`: bitmap:port, and every hash type made of ip, port and net.
 *
 * @param type `hash:ip,port`, `bitmap:port`, …
 * @param members `10.96.0.1,tcp:443`, … without options
 * @throws RangeError for a type that isn't one of these, or a member with another number of parts
 */
export function packetSet(type: string, members: Iterable<string>): PacketSet {
  if (type === "bitmap:port") return portBitmap(members);
  const dimensions = dimensionsOf(type);
  const entries = new Map<string, (readonly AddressRange[])[]>();
  for (const member of members) addMember(entries, dimensions, member);
  return { matches: (query) => matchesEntries(entries, dimensions, query) };
}

/**
 * The sets that `ipset save` printed, by name.
 *
 * @throws RangeError for a line that is neither create nor add, and as `packetSet`
 */
export function packetSets(save: string): ReadonlyMap<string, PacketSet> {
  const contents = new Map<string, { readonly type: string; readonly members: string[] }>();
  for (const line of save.split("\n").filter((text) => text !== "")) {
    const [command, name = "", word = "", ...options] = line.split(" ");
    if (command === "create") contents.set(name, { type: word, members: [] });
    else if (command === "add" && !options.includes("nomatch")) contents.get(name)?.members.push(word);
    else throw new RangeError(`neither create nor a plain add: ${line}`);
  }
  return new Map([...contents].map(([name, { type, members }]) => [name, packetSet(type, members)]));
}

/** The kernel's time when its `-m recent` lists were read. */
export interface KernelTime {
  /** As /proc/timer_list prints them; 64 bits, of which lists have the lower 32 or all. */
  readonly jiffies: number;
  /** Of a second; see `ticksPerSecond`. */
  readonly perSecond: number;
}

const CONFIGURABLE = [100, 250, 300, 1000] as const;

/**
 * How many jiffies this kernel has in a second: they begin at minus five minutes (INITIAL_JIFFIES), in 32 bits.
 *
 * @param uptime seconds since the start, of /proc/uptime
 */
export function ticksPerSecond(jiffies: number, uptime: number): number {
  const off = (perSecond: number) => Math.abs((jiffies - (2 ** 32 - 300 * perSecond)) / perSecond - uptime);
  return CONFIGURABLE.reduce((best, next) => (off(next) < off(best) ? next : best));
}

const LINE = /^src=(\S+) ttl: \d+ last_seen: \d+ oldest_pkt: \d+ ([\d, ]+)$/;

/**
 * A list as /proc/net/xt_recent/NAME shows it: address → seconds since each time it was seen there.
 */
export function parseRecentList(
  text: string,
  { jiffies, perSecond }: KernelTime,
): ReadonlyMap<string, readonly number[]> {
  const entries = text.split("\n").flatMap((line) => {
    const [, address = "", stamps = ""] = LINE.exec(line) ?? [];
    if (address === "") return [];
    const ages = stamps.split(",").map((stamp) => Math.max(0, (jiffies - Number(stamp)) / perSecond));
    return [[address, ages] as const];
  });
  return new Map(entries);
}

function bitsOf({ cidr }: Route): number {
  return prefixLengthOf(cidr);
}

function find(routes: readonly (Route & { readonly range: AddressRange })[], destination: string): string | undefined {
  const words = addressWords(destination);
  return routes.find(({ range }) => inRange(range, words))?.outInterface;
}

/** Protocols that the kernel takes in a query (rtm_getroute_parse_ip_proto). */
const PORTED: ReadonlySet<string> = new Set(["tcp", "udp"]);

/** Each line that fails has its complaint, and below it `Command failed -:LINE`. */
function errorsByLine(stderr: string): ReadonlyMap<number, string> {
  const errors = new Map<number, string>();
  let complaint = "";
  for (const line of stderr.split("\n")) {
    const failed = /^Command failed \S+:(\d+)$/.exec(line)?.[1];
    if (failed === undefined) complaint = line === "" ? complaint : line.replace(/^RTNETLINK answers: /, "");
    else errors.set(Number(failed), complaint);
  }
  return errors;
}

function routeIn(printed: unknown): RouteGet {
  const [route] = Array.isArray(printed) ? printed : [];
  const { type, dev }: { readonly type?: unknown; readonly dev?: unknown } = route ?? {};
  if (type === "local") return { kind: "local" };
  if (typeof dev === "string") return { kind: "unicast", outInterface: dev };
  return { kind: "error", message: "no route was printed" };
}

type Dimension = "ip" | "port" | "net";

/** Protocols whose ports bitmap:port looks at (ip_set_get_ip_port). */
const BITMAP_PROTOCOLS: ReadonlySet<string> = new Set(["tcp", "udp"]);

function portBitmap(members: Iterable<string>): PacketSet {
  const ports = new Set([...members].map(Number));
  return {
    matches: ({ protocol, flags, source, destination }) => {
      const { port } = flags[0] === "src" ? source : destination;
      return BITMAP_PROTOCOLS.has(protocol) && port !== undefined && ports.has(port);
    },
  };
}

function dimensionsOf(type: string): Dimension[] {
  const words = type.startsWith("hash:") ? type.slice("hash:".length).split(",") : [];
  const dimensions = words.filter((word) => word === "ip" || word === "port" || word === "net");
  if (words.length === 0 || dimensions.length !== words.length) throw new RangeError(`set type "${type}" is not known`);
  return dimensions;
}

/** Networks are looked through one by one among the members that agree in all else. */
function addMember(entries: Map<string, (readonly AddressRange[])[]>, dimensions: Dimension[], member: string): void {
  const parts = member.split(",");
  if (parts.length !== dimensions.length)
    throw new RangeError(`set member "${member}": must have ${dimensions.length} parts`);
  const key = parts.map((part, at) => exactPart(dimensions[at], part)).join(" ");
  const networks = parts.filter((_, at) => dimensions[at] === "net").map(addressRange);
  const known = entries.get(key);
  if (known === undefined) entries.set(key, [networks]);
  else known.push(networks);
}

function exactPart(dimension: Dimension | undefined, part: string): string {
  if (dimension === "net") return "*";
  if (dimension === "ip") return addressWords(part).join(".");
  return part.includes(":") ? part : `tcp:${part}`;
}

function matchesEntries(
  entries: ReadonlyMap<string, (readonly AddressRange[])[]>,
  dimensions: Dimension[],
  query: SetQuery,
): boolean {
  if (query.flags.length < dimensions.length) return false;
  const sides = dimensions.map((_, at) => (query.flags[at] === "src" ? query.source : query.destination));
  const key = sides.map((side, at) => queryPart(dimensions[at], side, query.protocol)).join(" ");
  const addresses = sides.filter((_, at) => dimensions[at] === "net").map(({ address }) => addressWords(address));
  return (entries.get(key) ?? []).some((networks) =>
    networks.every((network, at) => inRange(network, addresses[at] ?? [])),
  );
}

function queryPart(dimension: Dimension | undefined, side: Endpoint, protocol: string): string {
  if (dimension === "net") return "*";
  return dimension === "ip" ? addressWords(side.address).join(".") : `${protocol}:${side.port ?? 0}`;
}
