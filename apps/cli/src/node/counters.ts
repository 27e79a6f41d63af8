import { type RuleSet, renderRule } from "@fairlead/netfilter";

/**
 * Whether the rules that a node holds count packets by nfacct objects, which depends on its kernel: a plan that is
 * compared with them does the same, since it makes no difference to packets.
 */
export function hasCounters(rules: RuleSet): boolean {
  return [...rules.values()].some(({ chains }) =>
    ["KUBE-FORWARD", "KUBE-NODEPORTS"].some((name) =>
      chains.get(name)?.rules.some((rule) => renderRule(rule).includes(" --nfacct-name ")),
    ),
  );
}
