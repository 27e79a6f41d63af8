import { attemptAll, nextTurn } from "@fairlead/base";
import {
  type CleanupOptions,
  deleteChains,
  leadsToOne,
  payloadText,
  type Rule,
  restoreLines,
  ruleKey,
  unlinkCommands,
} from "@fairlead/netfilter";
import { BUILTIN_CHAINS, CHAINS, jumps, leadsToOwn, OWN_CHAINS, type RuleTable, TABLES } from "./plan/chains.ts";
import type { RulesPort } from "./port.ts";

/**
 * Removes the rules that this mode, or kube-proxy in it until v1.25, has made in one family. Does nothing where no
 * chain is there that only this mode has.
 *
 * @returns whether there was anything
 * @throws AggregateError with what failed, after both tables were tried
 */
export async function removeUserspaceMode(port: RulesPort, options: CleanupOptions = {}): Promise<boolean> {
  const keep = options.keep ?? (() => false);
  if (!(await wasHere(port))) return false;
  const present = { filter: await port.chains("filter"), nat: await port.chains("nat") };
  // What leads to the relays goes first: without it no packet goes to sockets that are not there.
  const tables = ["nat", "filter"] as const;
  const remove = (table: RuleTable) =>
    removeChains(
      port,
      table,
      CHAINS[table].filter((chain) => present[table].has(chain) && !keep(table, chain)),
    );
  await attemptAll(
    tables.map((table) => () => remove(table)),
    `cleanup of userspace mode (${port.family}) left something behind`,
  );
  return true;
}

/**
 * This mode makes all of its chains at once, so one of each table is enough; a list of all chains of a large nat table
 * takes seconds.
 */
async function wasHere(port: RulesPort): Promise<boolean> {
  for (const table of TABLES) {
    const [own = ""] = OWN_CHAINS[table];
    if ((await port.list(table, own)) !== undefined) return true;
  }
  return false;
}

async function removeChains(port: RulesPort, table: RuleTable, chains: readonly string[]): Promise<void> {
  if (chains.length === 0) return;
  const shared = sharedJumps(table, chains);
  const isLink = (rule: Rule) => leadsToOwn(rule, table) || shared.has(ruleKey(rule));
  const jumps = await unlinkCommands(
    port,
    BUILTIN_CHAINS[table].map((chain) => ({ table, chain, isLink })),
  );
  const commands = [...jumps, ...deleteChains(chains)];
  await port.restore(payloadText(restoreLines([{ table, commands }]), nextTurn));
}

/** Our jumps to chains that other modes have as well, of those that go. Other jumps to them are not ours to remove. */
function sharedJumps(table: RuleTable, chains: readonly string[]): ReadonlySet<string> {
  const node = { detector: { kind: "none" }, nodePortAddresses: { kind: "all" } } as const;
  return new Set(
    jumps({ family: "IPv4", host: "", node, localhostNodePorts: true })
      .filter((each) => each.table === table)
      .flatMap(({ first }) => first)
      .filter(leadsToOne(chains))
      .map(ruleKey),
  );
}
