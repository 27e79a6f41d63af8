import { BUILTIN_CHAINS, type ChainState, type RuleSet, type SavedChain, type SavedRules } from "@fairlead/netfilter";

const TABLES = ["nat", "filter"] as const;

/** A jump to a chain of kube-proxy, or of kubelet, which drops what only a proxy's marks let through. */
const TO_OWN = /(?:^| )-[jg] KUBE-\S+$/;

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

function jumpsOf(name: string, chain: SavedChain | undefined): ChainState {
  const rules = (chain?.texts ?? []).flatMap((text, at) => (TO_OWN.test(text) ? (chain?.ruleAt(at) ?? []) : []));
  return { name, policy: "ACCEPT", rules };
}
