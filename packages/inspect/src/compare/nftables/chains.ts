import { type NftChain, type NftTable, ruleText } from "@fairlead/netfilter/nft";
import type { Finding } from "../rules/rules.ts";
import { isOfClass } from "./classes.ts";
import { isFirewallChain, isKubeProxyChain } from "./kube-proxy.ts";

/**
 * How chains and their rules differ. Chains that nothing leads to make no difference.
 *
 * @param kubeProxys as `isKubeProxyTable` has it of the actual one
 */
export function compareChains(expected: NftTable, actual: NftTable, kubeProxys: boolean): readonly Finding[] {
  const wanted = [...expected.chains.values()].flatMap((chain) => {
    const there = actual.chains.get(chain.name);
    // It needs no other chains than the hooks', and what of its own is missing packets tell.
    if (kubeProxys && (there === undefined ? chain.base === undefined : isFirewallChain(chain.name))) return [];
    if (there !== undefined) return compareChain(chain, there, expected, actual);
    return isOfClass(chain.name) ? [] : [{ kind: "missing", where: `chain ${chain.name}`, what: "the chain" } as const];
  });
  const led = chainsLedTo(actual);
  const isOthers = (name: string) => !expected.chains.has(name) && !isOfClass(name) && !isKubeProxyChain(name);
  const extra = [...actual.chains.values()].filter(
    ({ name, base }) => isOthers(name) && (base !== undefined || led.has(name)),
  );
  return [
    ...wanted,
    ...extra.map(({ name }): Finding => ({ kind: "extra", where: `chain ${name}`, what: "the chain" })),
  ];
}

function compareChain(wanted: NftChain, found: NftChain, expected: NftTable, actual: NftTable): readonly Finding[] {
  const where = `chain ${wanted.name}`;
  const [base, foundBase] = [baseText(wanted), baseText(found)];
  const bases: readonly Finding[] =
    base === foundBase ? [] : [{ kind: "different", where, what: `${foundBase}, expected ${base}` }];
  const texts = wanted.rules.map((rule) => ruleText(rule, expected));
  const foundTexts = found.rules.map((rule) => ruleText(rule, actual));
  if (texts.join("\n") === foundTexts.join("\n")) return bases;
  const missing = without(texts, foundTexts).map((what): Finding => ({ kind: "missing", where, what }));
  const extra = without(foundTexts, texts).map((what): Finding => ({ kind: "extra", where, what }));
  const moved: readonly Finding[] =
    missing.length + extra.length > 0 ? [] : [{ kind: "different", where, what: "its rules stand in another order" }];
  return [...bases, ...missing, ...extra, ...moved];
}

function baseText({ base }: NftChain): string {
  if (base === undefined) return "no base chain";
  const { type, hook, priority, policy } = base;
  return `type ${type} hook ${hook} priority ${priority}; policy ${policy}`;
}

/** What of the first list is not in the second, where that has it as often. */
function without(texts: readonly string[], others: readonly string[]): readonly string[] {
  const left = [...others];
  return texts.filter((text) => {
    const at = left.indexOf(text);
    if (at >= 0) left.splice(at, 1);
    return at < 0;
  });
}

/** Chains that a rule or an element leads to. */
function chainsLedTo({ chains, sets }: NftTable): ReadonlySet<string> {
  const led = new Set<string>();
  for (const { rules } of chains.values()) {
    for (const { expressions } of rules) {
      for (const one of expressions) {
        if (one.kind === "immediate" && "verdict" in one && "chain" in one.verdict) led.add(one.verdict.chain);
      }
    }
  }
  for (const { elements } of sets.values()) {
    for (const { value } of elements.values()) {
      if (typeof value === "object" && "chain" in value) led.add(value.chain);
    }
  }
  return led;
}
