import { type AddressRange, addressRange, addressWords, inRange } from "@fairlead/base";
import type { PacketSet, SetQuery } from "./environment.ts";
import type { Endpoint } from "./packet.ts";

type Dimension = "ip" | "port" | "net";

/** Protocols whose ports bitmap:port looks at (ip_set_get_ip_port). */
const BITMAP_PROTOCOLS: ReadonlySet<string> = new Set(["tcp", "udp"]);

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
