import {
  configuredOptions,
  createNftablesBackend,
  type NftablesPort,
  nftablesFacts,
  tableName,
} from "@fairlead/backend-nftables";
import { errorChainText } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import type { IPFamily } from "@fairlead/core";
import { isAtLeast, type KernelVersion, kernelVersion, type NftablesClient } from "@fairlead/kernel";
import type { Kernel } from "../host/kernel.ts";
import type { Log } from "../log/log.ts";
import type { Mode, OpenedFor, ServedNode, Serving } from "./mode.ts";
import { probePlan } from "./nft-probe.ts";
import { WatchedTables } from "./nft-watched.ts";

/** kube-proxy's: what is set in it lets older kernels than it asks for be tried. */
const SKIP_VERSION = "KUBE_PROXY_NFTABLES_SKIP_KERNEL_VERSION_CHECK";

export const nftablesMode: Mode = {
  facts: nftablesFacts,
  whyNot,
  open,
  serve,
  removeTables: (kernel, serviceProxyName) => kernel.removeNftTables(serviceProxyName),
};

async function whyNot(_: AgentConfig, kernel: Pick<Kernel, "nftables">): Promise<string | undefined> {
  const old = whyTooOld(kernelVersion(), process.env[SKIP_VERSION]);
  if (old !== undefined) return old;
  try {
    await kernel.nftables();
    return undefined;
  } catch (error) {
    return `nf_tables cannot be reached by netlink: ${errorChainText(error)}`;
  }
}

/**
 * Beside what the kernel itself can do: the nft tool of distributions with older kernels fails over what this mode
 * writes, and then its other users fail, too (kubernetes/kubernetes#122743).
 *
 * @param skip not empty: whoever runs the agent has made sure of that tool
 */
export function whyTooOld(version: KernelVersion, skip = ""): string | undefined {
  if (isAtLeast(version, 5, 13) || skip !== "") return undefined;
  return `it needs Linux 5.13 or later, and this is ${version.release}; ${SKIP_VERSION}=1 has it tried`;
}

/**
 * Has the kernel check a table with everything that this mode writes, and write none of it: what is missing shows only
 * when it is used. Modules are loaded by the kernel itself.
 */
async function open(kernel: Kernel, family: IPFamily, { serviceProxyName }: OpenedFor): Promise<void> {
  const client = await kernel.nftables();
  try {
    await createNftablesBackend(dryPort(client), { family, serviceProxyName }).sync(
      probePlan(family, nftablesFacts.semantics),
    );
  } catch (error) {
    throw new Error(
      "the kernel refuses what nftables mode writes; it needs NET_ADMIN, Linux 5.13 or later and the modules nf_tables, " +
        "nft_chain_nat, nft_nat, nft_masq, nft_ct, nft_fib, nft_numgen, nft_reject",
      { cause: error },
    );
  }
}

/** Everything that would be written is only checked. */
function dryPort(client: NftablesClient): NftablesPort {
  return {
    commit: (batch) => client.check(batch),
    roomFor: (wanted) => client.roomFor(wanted),
    generation: () => client.generation(),
    sets: (family, table, wanted) => client.sets(family, table, wanted),
  };
}

async function serve({ config, families, kernel, log, progress }: ServedNode): Promise<Serving> {
  const table = tableName(config.serviceProxyName);
  const tables = new WatchedTables(await kernel.nftables(), table, log);
  const backends = families.map((family) => {
    const turn = progress.turnOf(family);
    const onForgottenClients = forgottenClients(family, table, log);
    const options = { ...configuredOptions(config), family, turn, onForgottenClients };
    return [family, createNftablesBackend(tables.port, options)] as const;
  });
  return {
    backends: new Map(backends),
    familiesAtOnce: nftablesFacts.familiesAtOnce,
    watchForeign: (notify, signal) => tables.watch(notify, signal),
  };
}

function forgottenClients(ipFamily: IPFamily, table: string, log: Log): (reason: Error) => void {
  return (reason) =>
    log.warn(
      `The table ${table} has sets that cannot be read: which endpoint a client with session affinity had is forgotten, and ` +
        "each is given one anew; all services are served",
      { ipFamily, reason: errorChainText(reason) },
    );
}
