import { FAST_PATH_CHAIN } from "@fairlead/backend-nftables";
import { type NftTableName, openPacketTracing, type PacketTracing, type RuleWithSets } from "@fairlead/kernel";
import { NFT_FAMILY, type NftFamily, type NftTraceEvent } from "@fairlead/netfilter/nft";
import type { Packet } from "@fairlead/trace";
import type { Context } from "../../frame/context.ts";
import { tracingBatch, tracingTable } from "../../node/trace-table.ts";
import { eventLine, packetLine } from "./event-text.ts";

/** A table of a service proxy in nftables mode: kube-proxy's and Fairlead's first, or an agent's with a name. */
const OF_PROXY = /^(?:kube-proxy$|fairlead-)/;

/** Whether services of a family are in tables of nftables here. */
export function hasProxyTable(names: readonly NftTableName[], family: Packet["family"]): boolean {
  return proxyTables(names, family).length > 0;
}

function proxyTables(names: readonly NftTableName[], family: Packet["family"]): readonly NftTableName[] {
  return names.filter((table) => table.family === NFT_FAMILY[family] && OF_PROXY.test(table.name));
}

/** What is asked for. */
export interface Watched {
  readonly packet: Packet;
  /** From every sender. */
  readonly fromAnybody: boolean;
  /** All tables of nftables. */
  readonly tables: readonly NftTableName[];
}

/**
 * Follows real packets through all tables of nftables until the signal aborts, by a table of its own, which goes with
 * this process however that ends.
 */
export async function followTables({ packet, fromAnybody, tables }: Watched, context: Context): Promise<void> {
  const { signal, out, warn, runner } = context;
  const own = tracingTable(process.pid);
  const tracing = await openPacketTracing(tracingBatch(own, packet, fromAnybody));
  try {
    const { stdout } = await runner.run(["ip", "-o", "link"]);
    const steps = new Steps(tracing, NFT_FAMILY[packet.family], interfacesIn(stdout));
    if (await hasFastPath(tracing, proxyTables(tables, packet.family))) {
      warn("connections of services may take the fast path: their first packets are shown, later ones meet no rules");
    }
    warn("following packets through the tables of nftables");
    for await (const event of tracing.events(signal)) {
      if (event === "lost") warn("the kernel reported more than could be read: some steps are missing");
      else for (const line of await steps.lines(event, event.table !== own)) out(`${line}\n`);
    }
  } finally {
    await tracing.close();
  }
}

async function hasFastPath(tracing: PacketTracing, tables: readonly NftTableName[]): Promise<boolean> {
  for (const { family, name } of tables) {
    const number = Object.entries(FAMILY_NAMES).find(([, text]) => text === family)?.[0];
    if (number === undefined) continue;
    if ((await tracing.chain({ family: Number(number), table: name }, FAST_PATH_CHAIN)) !== undefined) return true;
  }
  return false;
}

/** Lines of `ip -o link`: `2: eth0@if7: <…> …` */
function interfacesIn(text: string): ReadonlyMap<number, string> {
  return new Map(Array.from(text.matchAll(/^(\d+): ([^:@\s]+)/gm), ([, number, name = ""]) => [Number(number), name]));
}

/** Packets whose hooks are kept, and rules and chains. */
const MOST_KEPT = 10_000;

interface TracedPacket {
  hook?: string | undefined;
  line?: string;
}

/** Makes lines of steps; what they name is asked for once. */
class Steps {
  readonly #tracing: PacketTracing;
  readonly #ip: NftFamily;
  readonly #interfaces: ReadonlyMap<number, string>;
  readonly #rules = new Map<string, RuleWithSets | undefined>();
  /** Of base chains; undefined: it is none. */
  readonly #hooks = new Map<string, string | undefined>();
  /** Where each packet is, and what it was when it was told last. */
  readonly #packets = new Map<number, TracedPacket>();

  constructor(tracing: PacketTracing, ip: NftFamily, interfaces: ReadonlyMap<number, string>) {
    this.#tracing = tracing;
    this.#ip = ip;
    this.#interfaces = interfaces;
  }

  /** @param reports whether the step itself is told, alongside what becomes of the packet */
  async lines(event: NftTraceEvent, tells: boolean): Promise<readonly string[]> {
    const { id, family, packet } = event;
    const known = kept(this.#packets, id, (): TracedPacket => ({}));
    // Only base chains have a hook; those that they lead to are asked at the same one.
    known.hook = (await this.#hookOf(event)) ?? known.hook;
    const line = packet && packetLine(id, packet, (number) => this.#interfaces.get(number) ?? `interface ${number}`);
    const changed = line !== undefined && line !== known.line;
    if (changed) known.line = line;
    const table = `${FAMILY_NAMES[family] ?? family} ${event.table}`;
    return [
      ...(changed ? [line] : []),
      ...(tells ? [eventLine(event, { table, hook: known.hook, ip: this.#ip }, await this.#ruleOf(event))] : []),
    ];
  }

  async #hookOf({ family, table, chain }: NftTraceEvent): Promise<string | undefined> {
    const key = `${family} ${table} ${chain}`;
    if (this.#hooks.has(key)) return this.#hooks.get(key);
    const found = await this.#tracing.chain({ family, table }, chain);
    return kept(this.#hooks, key, () => found?.base?.hook);
  }

  async #ruleOf({ family, table, chain, handle }: NftTraceEvent): Promise<RuleWithSets | undefined> {
    if (handle === undefined) return undefined;
    const key = `${family} ${table} ${handle}`;
    if (this.#rules.has(key)) return this.#rules.get(key);
    const found = await this.#tracing.rule({ family, table, chain }, handle, this.#ip);
    return kept(this.#rules, key, () => found);
  }
}

/** NFPROTO_* of tables that packets of IP come to. */
const FAMILY_NAMES: Readonly<Record<number, string>> = { 1: "inet", 2: "ip", 5: "netdev", 7: "bridge", 10: "ip6" };

/** What a map has of a key, made where it has nothing; a full map begins anew. */
function kept<Key, Value>(map: Map<Key, Value>, key: Key, make: () => Value): Value {
  const known = map.get(key);
  if (known !== undefined) return known;
  if (map.size >= MOST_KEPT) map.clear();
  const made = make();
  map.set(key, made);
  return made;
}
