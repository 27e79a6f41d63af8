import { attemptAll } from "@fairlead/base";
import {
  type CleanupOptions,
  type Command,
  deleteChains,
  isServiceChain,
  type Links,
  leadsToOne,
  payloadText,
  restoreLines,
  ruleKey,
  type Table,
  unlinkCommands,
} from "@fairlead/netfilter";
import { BATCH, deleteStale } from "./commit.ts";
import { type ResolvedOptions, resolveOptions } from "./options.ts";
import { FIXED_CHAINS, JUMPS } from "./plan/frame.ts";
import { MARK_MASQ } from "./plan/group-names.ts";
import type { RulesPort } from "./port.ts";

/**
 * Removes everything that this mode or kube-proxy in it has ever made in one family: the jumps to our chains, the
 * chains of fixed names, and nat's chains of service ports and endpoints. Kubelet's chains (KUBE-FIREWALL,
 * KUBE-KUBELET-CANARY, KUBE-IPTABLES-HINT) and other KUBE- chains stay. Starts no restore where there is nothing.
 *
 * @throws AggregateError with what failed, after all tables were tried
 */
export async function removeIptablesMode(port: RulesPort, options: CleanupOptions = {}): Promise<void> {
  const keep = options.keep ?? (() => false);
  const resolved = resolveOptions(port.family, {});
  const tables = ["nat", "filter", "mangle"] as const;
  await attemptAll(
    tables.map((table) => () => cleanTable(port, table, keep, resolved)),
    `cleanup of ${port.family} iptables left something behind`,
  );
}

async function cleanTable(
  port: RulesPort,
  table: keyof typeof FIXED_CHAINS,
  keep: NonNullable<CleanupOptions["keep"]>,
  resolved: ResolvedOptions,
): Promise<void> {
  const existing = await port.chains(table);
  const fixed = FIXED_CHAINS[table].filter((chain) => existing.has(chain) && !keep(table, chain));
  const groupChains =
    table === "nat" ? [...existing].filter((chain) => isServiceChain(chain) && !keep(table, chain)) : [];
  const split = port.variant === "nft" && groupChains.length > BATCH.staleChains;
  const restore = async (commands: readonly Command[]) => {
    if (commands.length > 0) await port.restore(payloadText(restoreLines([{ table, commands }]), resolved.turn));
  };
  const jumps = await unlinkCommands(port, linksTo(fixed, table));
  if (!split) return restore([...jumps, ...deleteChains([...fixed, ...groupChains])]);
  // from the top down: what leads to the group chains, they themselves, and what they lead to
  await restore([...jumps, ...deleteChains(fixed.filter((chain) => chain !== MARK_MASQ))]);
  await deleteStale(port, groupChains, split, resolved);
  await restore([...deleteChains(fixed.filter((chain) => chain === MARK_MASQ))]);
}

function* linksTo(chains: readonly string[], table: Table): Generator<Links> {
  for (const { table: of, chain, rules } of JUMPS) {
    if (of !== table) continue;
    const ours = new Set(rules.filter(leadsToOne(chains)).map(ruleKey));
    if (ours.size > 0) yield { table, chain, isLink: (rule) => ours.has(ruleKey(rule)) };
  }
}
