import { type Command, payloadText, restoreLines, ruleKey, type Table, type Target } from "@fairlead/netfilter";
import { BATCH, deleteStale } from "./commit.ts";
import { type Settled, settle } from "./options.ts";
import { deleteChains, remove } from "./plan/commands.ts";
import { FIXED_CHAINS } from "./plan/frame.ts";
import { isGroupChain } from "./plan/group-names.ts";
import { JUMPS } from "./plan/jumps.ts";
import { MARK_MASQ } from "./plan/names.ts";
import type { IptablesPort } from "./port.ts";

export interface CleanupOptions {
  /** Chains that another mode uses under the same name and that stay, with the jumps to them. Default: none. */
  readonly keep?: (table: Table, chain: string) => boolean;
}

/**
 * Removes everything that this mode or kube-proxy in it has ever made in one family: the jumps to our chains, the
 * chains of fixed names, and nat's chains of service ports and endpoints. Kubelet's chains (KUBE-FIREWALL,
 * KUBE-KUBELET-CANARY, KUBE-IPTABLES-HINT) and other KUBE- chains stay. Starts no restore where there is nothing.
 *
 * @throws AggregateError with what failed, after all tables were tried
 */
export async function removeIptablesMode(port: IptablesPort, options: CleanupOptions = {}): Promise<void> {
  const keep = options.keep ?? (() => false);
  const settled = settle(port.family, {});
  const failures: unknown[] = [];
  for (const table of ["nat", "filter", "mangle"] as const) {
    try {
      await cleanTable(port, table, keep, settled);
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0)
    throw new AggregateError(failures, `cleanup of ${port.family} iptables left something behind`);
}

async function cleanTable(
  port: IptablesPort,
  table: keyof typeof FIXED_CHAINS,
  keep: (table: Table, chain: string) => boolean,
  settled: Settled,
): Promise<void> {
  const existing = await port.chains(table);
  const fixed = FIXED_CHAINS[table].filter((chain) => existing.has(chain) && !keep(table, chain));
  const groupChains =
    table === "nat" ? [...existing].filter((chain) => isGroupChain(chain) && !keep(table, chain)) : [];
  const split = port.variant === "nft" && groupChains.length > BATCH.staleChains;
  const restore = async (commands: readonly Command[]) => {
    if (commands.length > 0) await port.restore(payloadText(restoreLines([{ table, commands }]), settled.breathe));
  };
  const jumps = await unlink(port, table, fixed);
  if (!split) return restore([...jumps, ...deleteChains([...fixed, ...groupChains])]);
  // from the top down: what leads to the group chains, they themselves, and what they lead to
  await restore([...jumps, ...deleteChains(fixed.filter((chain) => chain !== MARK_MASQ))]);
  await deleteStale(port, groupChains, split, settled);
  await restore([...deleteChains(fixed.filter((chain) => chain === MARK_MASQ))]);
}

/** Takes every copy of our jumps out of the built-in chains, for the chains that go. */
async function unlink(port: IptablesPort, table: Table, chains: readonly string[]): Promise<readonly Command[]> {
  const commands: Command[] = [];
  for (const jumps of JUMPS) {
    if (jumps.table !== table) continue;
    const ours = new Set(jumps.rules.filter(({ target }) => leadsTo(target, chains)).map(ruleKey));
    if (ours.size === 0) continue;
    for (const rule of (await port.list(table, jumps.chain)) ?? []) {
      if (ours.has(ruleKey(rule))) commands.push(remove(jumps.chain, rule));
    }
  }
  return commands;
}

function leadsTo(target: Target | undefined, chains: readonly string[]): boolean {
  return target?.kind === "jump" && chains.includes(target.chain);
}
