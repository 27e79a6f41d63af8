import { systemClock } from "@fairlead/base";
import type { SavedRules, SetState, VirtualServerState } from "@fairlead/netfilter";
import { NFT_FAMILY, type NftFamily, type NftTable } from "@fairlead/netfilter/nft";
import type { NodeAddresses } from "../addresses/addresses.ts";
import { createNodeAddresses, type NodeAddressesOptions } from "../addresses/open.ts";
import type { IPFamily } from "../family.ts";
import { createIpset } from "../ipset/open.ts";
import { openIpvsSession } from "../ipvs/session.ts";
import { createLinks } from "../links/open.ts";
import { openListening, openRouteListening } from "../netlink/listening.ts";
import { openGenericSocket, openNetfilterSocket, openRouteSocket, openTransactionSocket } from "../netlink/socket.ts";
import type { NftablesClient } from "../nftables/client.ts";
import { HeldTable } from "../nftables/held-table.ts";
import { openNftables } from "../nftables/open.ts";
import { isNftTableThere } from "../nftables/table-there.ts";
import type { Runner } from "../runner/runner.ts";
import { createSysctl } from "../sysctl/sysctl.ts";
import { RulesReader } from "./rules.ts";
import { readingRunner } from "./runner.ts";
import { readingOnly, readsLinks, readsNftables, readsServers, readsSets } from "./sockets.ts";

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

async function all<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}
