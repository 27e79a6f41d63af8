/** Reads the kernel's state and writes nothing: its sockets and its runner refuse whatever changes something. */

import { readFile } from "node:fs/promises";
import { systemClock } from "@fairlead/base";
import { LazySaveParser, type SavedRules, type SetState, type VirtualServerState } from "@fairlead/netfilter";
import { NFT_FAMILY, type NftFamily, type NftTable, nftNumbers } from "@fairlead/netfilter/nft";
import { createNodeAddresses, type NodeAddressesOptions } from "./address-monitor.ts";
import type { NodeAddresses } from "./addresses.ts";
import type { IPFamily } from "./family.ts";
import { createIpset, IPSET_TYPES as SETS } from "./ipset.ts";
import { createGlance, FEW_ENTRIES, LEGACY_TABLE_NAMES, type Variant } from "./iptables/tables-there.ts";
import { detectVariant } from "./iptables/tools.ts";
import { openIpvsSession } from "./ipvs.ts";
import { COMMANDS } from "./ipvs-messages.ts";
import { createLinks, TYPES } from "./links.ts";
import { openListening, openRouteListening } from "./netlink/listening.ts";
import {
  type NetlinkSocket,
  openGenericSocket,
  openNetfilterSocket,
  openRouteSocket,
  openTransactionSocket,
} from "./netlink/socket.ts";
import { HeldTable } from "./nftables/held-table.ts";
import { type NftablesClient, openNftables } from "./nftables/open.ts";
import { isNftTableThere } from "./nftables/read.ts";
import type { Argv, Runner } from "./runner.ts";
import { createSysctl } from "./sysctl.ts";

/**
 * What a kernel holds for a service proxy, for a reader that must not change it. Kept are sockets, rules where they are
 * few, and tables that were asked for.
 */
export interface KernelReader {
  /**
   * All rules of iptables of a family, in the variant that the host uses; those of the last time where they are few and
   * no program has changed them since.
   *
   * @throws CommandError when they cannot be listed
   */
  rules(family: IPFamily): Promise<SavedRules>;
  /** A number that each transaction of any program raises, iptables' too; undefined: the host uses legacy iptables. */
  rulesGeneration(): Promise<number | undefined>;
  /** The same, of nf_tables only. */
  generation(): Promise<number>;
  /** Whether nf_tables has a table of this family and name. */
  hasNftTable(family: IPFamily, name: string): Promise<boolean>;
  /**
   * As it is until it is asked for again: from the second time on that costs what has changed.
   *
   * @returns undefined: there is no such table
   */
  nftTable(family: IPFamily, name: string): Promise<NftTable | undefined>;
  /** All virtual servers of ip_vs with their destinations; none where the kernel has no ip_vs. */
  servers(): Promise<readonly VirtualServerState[]>;
  /** Those of the names that there are. */
  sets(names: Iterable<string>): Promise<readonly SetState[]>;
  /** undefined: there is no such device. */
  addressesOf(device: string): Promise<ReadonlySet<string> | undefined>;
  /** The node's addresses. */
  readonly addresses: NodeAddresses;
  /** A kernel setting by its path below /proc/sys; undefined: there is none. */
  setting(key: string): Promise<string | undefined>;
  /** Closes the sockets; calls after that fail. */
  close(): Promise<void>;
}

/**
 * Reads the kernel of this network namespace. What could change it is refused before it gets there: of netlink only
 * requests that read are sent, and only programs that print are started.
 */
export function openKernelReader(unbounded: Runner, options: NodeAddressesOptions = {}): KernelReader {
  const runner = readingRunner(unbounded);
  let opened: Promise<NftablesClient> | undefined;
  const nftables = () => (opened ??= openNftables({ open: readingOnly(openTransactionSocket, readsNftables) }));
  const held = new Map<string, HeldTable>();
  const table = (family: NftFamily, name: string): HeldTable => {
    const known = held.get(`${family} ${name}`);
    if (known !== undefined) return known;
    const made = new HeldTable({
      family,
      name,
      read: async () => (await nftables()).table(family, name),
      generation: async () => (await nftables()).generation(),
      listen: openListening,
      clock: systemClock,
    });
    held.set(`${family} ${name}`, made);
    return made;
  };
  const rules = new RulesReader(runner, async () => (await nftables()).generation());
  const sets = createIpset(runner, { open: readingOnly(openNetfilterSocket, readsSets) });
  const openRoutes = readingOnly(openRouteSocket, readsLinks);
  const links = createLinks(runner, { open: openRoutes });
  return {
    rules: (family) => rules.rules(family),
    rulesGeneration: () => rules.generation(),
    generation: async () => (await nftables()).generation(),
    hasNftTable: async (family, name) => (await isNftTableThere(family, name)) === true,
    nftTable: (family, name) => table(NFT_FAMILY[family], name).table(),
    async servers() {
      const session = await openIpvsSession(readingOnly(openGenericSocket, readsServers));
      try {
        return await all(session.servers());
      } finally {
        await session.close();
      }
    },
    sets: (names) => all(sets.save(names)),
    addressesOf: (device) => links.addresses(device),
    addresses: createNodeAddresses(runner, { open: openRoutes, listen: openRouteListening, ...options }),
    setting: (key) => createSysctl().read(key),
    async close() {
      for (const one of held.values()) one.close();
      await (await opened)?.close();
    },
  };
}

/** Programs that only print, as they are called here; `iptables-save` takes no lock and counts nothing. */
const READS: readonly (readonly string[])[] = [
  ...["iptables", "ip6tables"].flatMap((tool) => ["nft", "legacy"].map((variant) => [`${tool}-${variant}-save`])),
  ...["iptables", "ip6tables"].map((tool) => [`${tool}-nft-save`, "-t", "mangle"]),
  ["ip", "-json", "address"],
  ["ipset", "save"],
];

/**
 * The same runner, which starts nothing but programs that only print.
 *
 * @throws Error when it is asked to start another one
 */
export function readingRunner(runner: Runner): Runner {
  const checked = (argv: Argv) => {
    if (READS.some((known) => known.length === argv.length && known.every((word, at) => argv[at] === word)))
      return argv;
    throw new Error(`${argv.join(" ")}: may change the kernel; only reads are allowed here`);
  };
  return {
    run: async (argv, options) => {
      const { input: _none, ...others } = options ?? {};
      return runner.run(checked(argv), others);
    },
    stream: (argv, options) => runner.stream(checked(argv), options),
  };
}

/** What is asked by netlink: the type of a message, and of generic netlink the command. */
interface NetlinkRequest {
  readonly type: number;
  readonly command: number;
}

const { MESSAGES, SUBSYSTEM } = nftNumbers;
const NFT_READS: ReadonlySet<number> = new Set(
  [
    MESSAGES.getTable,
    MESSAGES.getChain,
    MESSAGES.getRule,
    MESSAGES.getSet,
    MESSAGES.getElement,
    MESSAGES.getFlowtable,
    MESSAGES.getGeneration,
  ].map((message) => (SUBSYSTEM << 8) | message),
);

/** Of nf_tables, by nfnetlink. */
export const readsNftables = ({ type }: NetlinkRequest) => NFT_READS.has(type);
/** Of sets and their members, by nfnetlink. */
export const readsSets = ({ type }: NetlinkRequest) => type === SETS.list;

const LINK_READS: ReadonlySet<number> = new Set([TYPES.getLink, TYPES.getAddress]);

/** Of devices and their addresses, by rtnetlink. */
export const readsLinks = ({ type }: NetlinkRequest) => LINK_READS.has(type);

/** GENL_ID_CTRL and CTRL_CMD_GETFAMILY (linux/genetlink.h): the number of a family. */
const CONTROLLER = 0x10;
const GET_FAMILY = 3;
/** Families of generic netlink are numbered from here on (GENL_MIN_ID). */
const FIRST_FAMILY = 0x10;

const IPVS_READS: ReadonlySet<number> = new Set([COMMANDS.getService, COMMANDS.getDestination]);

/** Of virtual servers, by generic netlink. */
export const readsServers = ({ type, command }: NetlinkRequest) =>
  type === CONTROLLER ? command === GET_FAMILY : type > FIRST_FAMILY && IPVS_READS.has(command);

/**
 * The same socket, which sends nothing but what only reads: its user cannot change the kernel, by mistake or
 * otherwise.
 *
 * @throws WritesRefused when it is asked to send anything else
 */
export function readingOnly<Socket extends NetlinkSocket>(
  open: () => Promise<Socket>,
  reads: (asked: NetlinkRequest) => boolean,
): () => Promise<Socket> {
  return async () => {
    const socket = await open();
    const send = async (messages: Uint8Array) => {
      for (const asked of askedIn(messages)) if (!reads(asked)) throw new WritesRefused(asked);
      return socket.send(messages);
    };
    return { ...socket, send };
  };
}

/** Something tried to write through a reader: a fault of the program, which the kernel did not see. */
export class WritesRefused extends Error {
  override readonly name = "WritesRefused";

  constructor({ type, command }: NetlinkRequest) {
    super(`netlink: message ${type}, command ${command} may change the kernel; only reads are allowed here`);
  }
}

async function all<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

/** The chain of nat that every service proxy has, in every mode with rules of iptables. */
const OF_PROXIES = "KUBE-SERVICES";
/** Milliseconds that a listing of very many rules may take. */
const LISTING_MS = 120_000;
/** Characters of a listing that may be kept: the rules of ipvs mode, or those of few services. */
const MOST_KEPT = 1_000_000;
/**
 * How often a listing may be given. Rules of the legacy variant that changed while they were listed, and changed back
 * before they were asked about again, would be taken for what was listed.
 */
const MOST_OFTEN = 30;

interface Kept {
  readonly state: string;
  readonly rules: SavedRules;
  given: number;
}

/** Lists the rules of iptables, by a process only where they may have changed since. */
class RulesReader {
  readonly #runner: Runner;
  readonly #generation: () => Promise<number>;
  #variant: Promise<Variant> | undefined;
  /** In which families there was a proxy's chain at the last listing. */
  readonly #served = new Set<IPFamily>();
  readonly #kept = new Map<IPFamily, Kept>();
  readonly #legacyState = { IPv4: createLegacyState("IPv4"), IPv6: createLegacyState("IPv6") } as const;

  /** @param generation the number that each transaction of nf_tables raises */
  constructor(runner: Runner, generation: () => Promise<number>) {
    this.#runner = runner;
    this.#generation = generation;
  }

  /** @throws CommandError when they cannot be listed */
  async rules(family: IPFamily): Promise<SavedRules> {
    const state = await this.#state(family);
    const kept = this.#kept.get(family);
    if (kept !== undefined && kept.state === state && kept.given < MOST_OFTEN) {
      kept.given += 1;
      return kept.rules;
    }
    this.#kept.delete(family);
    const { rules, characters } = await this.#list(family);
    const isLarge = characters > MOST_KEPT;
    if (state !== undefined && !isLarge && this.#served.size > 0 && state === (await this.#state(family)))
      this.#kept.set(family, { state, rules, given: 0 });
    return rules;
  }

  /** undefined: the host uses legacy iptables, which have none. */
  async generation(): Promise<number | undefined> {
    return (await this.#used()) === "nft" ? this.#generation() : undefined;
  }

  async #list(family: IPFamily): Promise<{ readonly rules: SavedRules; readonly characters: number }> {
    const tool = `${family === "IPv4" ? "iptables" : "ip6tables"}-${await this.#used()}-save`;
    const parser = new LazySaveParser({ family });
    let characters = 0;
    for await (const piece of this.#runner.stream([tool], { timeoutMs: LISTING_MS })) {
      characters += piece.length;
      parser.push(piece);
    }
    const rules = parser.end();
    if (rules.get("nat")?.chains.has(OF_PROXIES) === true) this.#served.add(family);
    else this.#served.delete(family);
    // Where there is nothing yet, which variant the host uses is to be reported later.
    if (this.#served.size === 0) this.#variant = undefined;
    return { rules, characters };
  }

  #used(): Promise<Variant> {
    this.#variant ??= detectVariant(this.#runner);
    return this.#variant;
  }

  /** The same twice: no program changed the rules in between. Undefined: unknown. */
  async #state(family: IPFamily): Promise<string | undefined> {
    if ((await this.#used()) === "legacy") return this.#legacyState[family]();
    return this.#generation().then(String, () => undefined);
  }
}

const TABLES = ["filter", "nat", "mangle", "raw", "security"] as const;

/**
 * What asks for something that is different after any change of a family's legacy rules in this network namespace,
 * whatever they have counted. It gives undefined where this is unknown: the kernel does not say it, or a table is
 * large.
 */
function createLegacyState(family: IPFamily): () => Promise<string | undefined> {
  const glance = createGlance(family, "legacy");
  return async () => {
    const names = (await readFile(LEGACY_TABLE_NAMES[family], "utf8").catch(() => undefined))?.split("\n");
    if (names === undefined) return undefined;
    const states: string[] = [];
    for (const table of TABLES.filter((one) => names.includes(one))) {
      const { state, entries = 0 } = (await glance(table)) ?? {};
      if (state === undefined || entries > FEW_ENTRIES) return undefined;
      states.push(`${table} ${state}`);
    }
    return states.join(", ");
  };
}

/** nlmsghdr: length, type; the command is the first byte after it. */
const TYPE_AT = 4;
const COMMAND_AT = 16;

function* askedIn(messages: Uint8Array): Generator<NetlinkRequest> {
  const view = new DataView(messages.buffer, messages.byteOffset, messages.byteLength);
  for (let at = 0; at < messages.length; ) {
    const length = view.getUint32(at, true);
    if (length <= COMMAND_AT || at + length > messages.length)
      throw new RangeError("netlink: a message without an end");
    yield { type: view.getUint16(at + TYPE_AT, true), command: view.getUint8(at + COMMAND_AT) };
    at += (length + 3) & ~3;
  }
}
