/** The kernel of this network namespace. */

import { tableName } from "@fairlead/backend-nftables";
import { errorChainText, errorText, IP_FAMILIES, systemClock } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import {
  areTablesThere,
  CommandError,
  createChainsThere,
  createConntrack,
  createDeviceFollower,
  createGlance,
  createIpset,
  createIpvsadm,
  createLinks,
  createModules,
  createNfacct,
  createNodeAddresses,
  createRouting,
  createRuleCounts,
  createRunner,
  createSysctl,
  detectVariant,
  type FlowtableTest,
  isNftTableThere,
  type NftablesClient,
  NftablesError,
  openGenericSocket,
  openIptables,
  openIptablesInUse,
  openNetfilterSocket,
  openNftables,
  openRouteListening,
  openRouteSocket,
  openTracking,
  type Runner,
  runFlowtableTest,
} from "@fairlead/kernel";
import { NftBatch } from "@fairlead/netfilter/nft";
import { type Kernel, sourceAddress } from "./kernel.ts";
import type { Log } from "./log.ts";

/** The kernel of the network namespace that this process runs in. */
export function realKernel(log: Log): Kernel {
  const runner = createRunner();
  const onProblem = onceEach((error) =>
    log.warn("Node address updates lost; known addresses stay in effect, retrying", { error }),
  );
  const onFallback = (reason: unknown) =>
    log.verbose(1, "Deleting conntrack entries with conntrack-tools; this is slow for many entries", {
      reason: errorChainText(reason),
    });
  // One answer for both families, found once: looking takes several processes.
  let variant: ReturnType<typeof detectVariant> | undefined;
  const detect = () => (variant ??= detectVariant(runner));
  return {
    iptables: (family) =>
      openIptables(runner, {
        family,
        detect,
        glance: createGlance,
        ruleCounts: createRuleCounts,
        chainsThere: createChainsThere,
      }),
    iptablesInUse: (family) =>
      openIptablesInUse(runner, { family, areThere: areTablesThere, chainsThere: createChainsThere }),
    ipvs: {
      servers: createIpvsadm(runner, { open: openGenericSocket }),
      sets: createIpset(runner, { open: openNetfilterSocket }),
      links: createLinks(runner, { open: openRouteSocket }),
    },
    modules: createModules(runner),
    addresses: createNodeAddresses(runner, {
      open: openRouteSocket,
      listen: openRouteListening,
      onProblem,
    }),
    devices: createDeviceFollower({ open: openRouteSocket, listen: openRouteListening, timers: systemClock }),
    testFlowtable: () => testFlowtable(runner),
    routing: createRouting(runner, { listen: openRouteListening }),
    conntrack: createConntrack(runner, { onFallback }),
    tracking: () => openTracking(runner),
    nfacct: createNfacct(runner, { open: openNetfilterSocket }),
    sysctl: createSysctl(),
    nftables: () => openNftables(),
    removeNftTables: (serviceProxyName) => removeNftTables({ open: openNftables, runner }, tableName(serviceProxyName)),
    hasNftTable,
    sourceAddress,
  };
}

interface NftLeftoversParts {
  readonly open: () => Promise<Pick<NftablesClient, "commit" | "close">>;
  /** For the nft tool, where there is no netlink; without the tool nothing is done then. */
  readonly runner: Runner;
  /** Whether the kernel has such a table; undefined: it does not say, and the deletion is tried. */
  readonly isThere?: (family: IPFamily, name: string) => Promise<boolean | undefined>;
}

const FAMILIES = [
  ["ip", "IPv4"],
  ["ip6", "IPv6"],
] as const satisfies readonly (readonly [name: string, family: IPFamily])[];

/**
 * Removes what nftables mode left: kube-proxy's, and ours, has one table for each family.
 *
 * @param table its name in both
 * @returns what was removed, as nft names it: `table ip kube-proxy`
 * @throws NftablesError, CommandError when a table cannot be deleted
 */
export async function removeNftTables(parts: NftLeftoversParts, table: string): Promise<readonly string[]> {
  const { isThere = isNftTableThere } = parts;
  const removed: string[] = [];
  for (const [name, family] of FAMILIES) {
    if ((await isThere(family, table)) === false) continue;
    if (await deleteTable(parts, name, table)) removed.push(`table ${name} ${table}`);
  }
  return removed;
}

/** The first argument of the process that runs the test; no flag of the agent. */
export const FLOWTABLE_TEST = "test-flowtable";

export async function flowtableTestProcess(): Promise<string> {
  const tested = await runFlowtableTest().catch(
    (error: unknown): FlowtableTest => ({ outcome: "impossible", reason: errorText(error) }),
  );
  return JSON.stringify(tested);
}

async function hasNftTable(name: string): Promise<boolean | undefined> {
  const [IPv4, IPv6] = await Promise.all(IP_FAMILIES.map((family) => isNftTableThere(family, name)));
  return IPv4 === true || IPv6 === true || (IPv4 ?? IPv6);
}

/** Tries come again and again; what went wrong is reported when it is something else than before. */
function onceEach(report: (error: string) => void): (error: unknown) => void {
  let last = "";
  return (error) => {
    const text = errorChainText(error);
    if (text !== last) report(text);
    last = text;
  };
}

async function deleteTable({ open, runner }: NftLeftoversParts, family: "ip" | "ip6", table: string): Promise<boolean> {
  // Why it cannot be opened, the tool will say: it needs the same of the kernel.
  const client = await open().catch(() => undefined);
  if (client === undefined) return deleteByTool(runner, family, table);
  try {
    await client.commit(new NftBatch(family, table).deleteTable());
    return true;
  } catch (error) {
    if (error instanceof NftablesError && error.code === "ENOENT") return false;
    throw error;
  } finally {
    await client.close();
  }
}

async function deleteByTool(runner: Runner, family: string, table: string): Promise<boolean> {
  try {
    await runner.run(["nft", "delete", "table", family, table]);
    return true;
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    if (error.reason === "not-found" || error.stderr.includes("No such file or directory")) return false;
    throw error;
  }
}

/** A stalled connection is a failure; the whole test takes well below a second. */
const LIMIT_MS = 30_000;

/** Runs the test in a process of its own, which enters network namespaces. */
async function testFlowtable(runner: Runner): Promise<FlowtableTest> {
  const [, program = ""] = process.argv;
  const argv = [process.execPath, ...process.execArgv, program, FLOWTABLE_TEST] as const;
  try {
    const { stdout } = await runner.run(argv, { timeoutMs: LIMIT_MS });
    return JSON.parse(stdout);
  } catch (error) {
    if (error instanceof CommandError && error.timedOut)
      return { outcome: "failed", reason: `a connection stalled: no answer within ${LIMIT_MS / 1000} s` };
    return { outcome: "impossible", reason: errorText(error) };
  }
}
