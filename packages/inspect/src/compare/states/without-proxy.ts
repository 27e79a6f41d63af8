/** Rules without those of a proxy: of others, what reads its marks; of a proxy, what is its own. */

import {
  BUILTIN_CHAINS,
  type ChainState,
  isServiceChain,
  type Rule,
  type RuleSet,
  renderRule,
  type SavedChain,
  type SavedRules,
} from "@fairlead/netfilter";
import { factsOf, MODES } from "../../modes/index.ts";
import type { KernelState } from "../ways.ts";

/** What modes keep on a node while they run, and a chain that kube-proxy had until 1.27. */
const FIXED_CHAINS: ReadonlySet<string> = new Set([
  ...MODES.flatMap((mode) => Object.values(factsOf(mode).keeps).flat()),
  "KUBE-MARK-DROP",
]);

/**
 * Whether it is a chain of a service proxy, in any mode, by its name. kubelet's own (KUBE-FIREWALL, …) and those of
 * others that begin alike (KUBE-ROUTER-…) are not.
 */
export function isProxyChain(name: string): boolean {
  return FIXED_CHAINS.has(name) || isServiceChain(name);
}

/** In each family, of nftables mode. */
const OWN_TABLE = "kube-proxy";

/** A kernel as it would be without its service proxy: the rules, tables and sets of everyone else. */
export function withoutProxy(state: KernelState): KernelState {
  const { ruleSet, nftables = [], environment } = state;
  return { ruleSet: othersRules(ruleSet), nftables: nftables.filter(({ name }) => name !== OWN_TABLE), environment };
}

/** A rule of another program that depends on chains or sets of a service proxy, which go with its mode. */
export interface Reader {
  /** `filter INPUT` */
  readonly where: string;
  readonly rule: string;
}

/** The rules that lead to a proxy's chains, or ask its sets, without being its own. */
export function readersOf(ruleSet: RuleSet): readonly Reader[] {
  return [...ruleSet.values()].flatMap(({ table, chains }) =>
    [...chains.values()]
      .filter(({ name }) => !isProxyChain(name))
      .flatMap(({ name, rules }) =>
        rules
          .map((rule) => ({ where: `${table} ${name}`, rule: renderRule(rule), own: isOwnJump(rule) }))
          .filter(({ rule, own }) => !own && READS.test(rule)),
      )
      .map(({ where, rule }) => ({ where, rule })),
  );
}

const TABLES = ["nat", "filter"] as const;

/**
 * The rules of a service proxy only: of the built-in chains what leads to its chains, with the policy ACCEPT. What
 * others do to packets is theirs; it would be so alongside any proxy.
 */
export function ownRules(rules: SavedRules): RuleSet {
  return new Map(
    TABLES.map((table) => {
      const saved = rules.get(table)?.chains ?? new Map<string, SavedChain>();
      const chains = new Map<string, ChainState>(saved);
      for (const name of BUILTIN_CHAINS[table]) chains.set(name, jumpsOf(name, saved.get(name)));
      return [table, { table, chains }];
    }),
  );
}

function othersRules(ruleSet: RuleSet): RuleSet {
  return new Map(
    [...ruleSet].map(([name, { table, chains }]) => {
      const others = [...chains.values()].filter(({ name: chain }) => !isProxyChain(chain));
      return [name, { table, chains: new Map(others.map((chain) => [chain.name, withoutJumps(chain)])) }];
    }),
  );
}

function withoutJumps({ name, policy, rules }: ChainState): ChainState {
  return { name, ...(policy && { policy }), rules: rules.filter((rule) => !leadsToOwn(rule)) };
}

function leadsToOwn({ target }: Pick<Rule, "target">): boolean {
  return target !== undefined && "chain" in target && isProxyChain(target.chain);
}

const READS = /(?:-[jg] KUBE-(?!FIREWALL|KUBELET|IPTABLES-HINT|ROUTER-|POD-FW-|NWPLCY-)|--match-set KUBE-)/;

/** A proxy's jumps have its comments. */
function isOwnJump(rule: Rule): boolean {
  const comments = rule.matches.flatMap((match) => (match.kind === "comment" ? [match.text] : []));
  return leadsToOwn(rule) && comments.some((text) => /^kube(?:rnetes |-proxy )/.test(text));
}

/** A jump to a chain of kube-proxy, or of kubelet, which drops what only a proxy's marks let through. */
const TO_OWN = /(?:^| )-[jg] KUBE-\S+$/;

function jumpsOf(name: string, chain: SavedChain | undefined): ChainState {
  const rules = (chain?.texts ?? []).flatMap((text, at) => (TO_OWN.test(text) ? (chain?.ruleAt(at) ?? []) : []));
  return { name, policy: "ACCEPT", rules };
}
