import { LazySaveParser, type SavedRules, type SetState, type VirtualServerState } from "@fairlead/netfilter";
import { NFT_FAMILY, type NftTable } from "@fairlead/netfilter/nft";
import type { NodeAddresses } from "../addresses/addresses.ts";
import { createNodeAddresses, type NodeAddressesOptions } from "../addresses/open.ts";
import type { IPFamily } from "../family.ts";
import { createIpset } from "../ipset/open.ts";
import { detectVariant } from "../iptables/detect.ts";
import type { Variant } from "../iptables/variant.ts";
import { openIpvsSession } from "../ipvs/session.ts";
import { createLinks } from "../links/open.ts";
import { openGenericSocket, openNetfilterSocket, openRouteSocket, openTransactionSocket } from "../netlink/socket.ts";
import type { NftablesClient } from "../nftables/client.ts";
import { openNftables } from "../nftables/open.ts";
import { isNftTableThere } from "../nftables/table-there.ts";
import type { Runner } from "../runner/runner.ts";
import { createSysctl } from "../sysctl/sysctl.ts";
import { readingRunner } from "./runner.ts";
import { readingOnly, readsLinks, readsNftables, readsServers, readsSets } from "./sockets.ts";

/** What a kernel holds for a service proxy, for somebody who must not change it. Nothing is kept open but a socket. */
export interface KernelReader {
  /**
   * All rules of iptables of a family, in the variant that the host uses.
   *
   * @throws CommandError when they cannot be listed
   */
  rules(family: IPFamily): Promise<SavedRules>;
  /** A number that each transaction of anybody raises, of iptables' too; undefined: the host uses legacy iptables. */
  rulesGeneration(): Promise<number | undefined>;
  /** The same, of nf_tables only. */
  generation(): Promise<number>;
  hasNftTable(family: IPFamily, name: string): Promise<boolean>;
  /** undefined: there is no such table. */
  nftTable(family: IPFamily, name: string): Promise<NftTable | undefined>;
  servers(): Promise<readonly VirtualServerState[]>;
  /** Those of the names that there are. */
  sets(names: Iterable<string>): Promise<readonly SetState[]>;
  /** undefined: there is no such device. */
  addressesOf(device: string): Promise<ReadonlySet<string> | undefined>;
  readonly addresses: NodeAddresses;
  /** A kernel setting by its path below /proc/sys; undefined: there is none. */
  setting(key: string): Promise<string | undefined>;
  close(): Promise<void>;
}

/** The chain of nat that every service proxy has, in every mode with rules of iptables. */
const OF_PROXIES = "KUBE-SERVICES";
/** Milliseconds that a listing of very many rules may take. */
const LISTING_MS = 120_000;

/**
 * Reads the kernel of this network namespace. What could change it is refused before it gets there: of netlink only
 * requests that read are sent, and only programs that print are started.
 */
export function openKernelReader(unbounded: Runner, options: NodeAddressesOptions = {}): KernelReader {
  const runner = readingRunner(unbounded);
  let variant: Promise<Variant> | undefined;
  const used = () => (variant ??= detectVariant(runner));
  let opened: Promise<NftablesClient> | undefined;
  const nftables = () => (opened ??= openNftables({ open: readingOnly(openTransactionSocket, readsNftables) }));
  const sets = createIpset(runner, { open: readingOnly(openNetfilterSocket, readsSets) });
  const links = createLinks(runner, { open: readingOnly(openRouteSocket, readsLinks) });
  return {
    async rules(family) {
      const tool = `${family === "IPv4" ? "iptables" : "ip6tables"}-${await used()}-save`;
      const parser = new LazySaveParser({ family });
      for await (const piece of runner.stream([tool], { timeoutMs: LISTING_MS })) parser.push(piece);
      const saved = parser.end();
      // Where there is nothing yet, which variant the host uses is to be told later.
      if (saved.get("nat")?.chains.has(OF_PROXIES) !== true) variant = undefined;
      return saved;
    },
    rulesGeneration: async () => ((await used()) === "nft" ? (await nftables()).generation() : undefined),
    generation: async () => (await nftables()).generation(),
    hasNftTable: async (family, name) => (await isNftTableThere(family, name)) === true,
    nftTable: async (family, name) => (await nftables()).table(NFT_FAMILY[family], name),
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
    addresses: createNodeAddresses(runner, options),
    setting: (key) => createSysctl().read(key),
    close: async () => (await opened)?.close(),
  };
}

async function all<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}
