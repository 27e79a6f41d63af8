import type { RuleCount } from "@fairlead/inspect";
import { type Attempt, outputOf } from "./command-result.ts";

/** What one variant of iptables holds, as its own tool lists it. */
export interface ListedRules {
  readonly variant: RuleCount["variant"];
  /** Of IPv4, all tables; undefined: it may not be read. */
  readonly text: string | undefined;
  /** Of IPv6 the table filter; undefined: it may not be read, or there is no tool for it. */
  readonly filter6: string | undefined;
}

/** Undefined: the variant is not installed. */
export async function listedRules(attempt: Attempt, variant: RuleCount["variant"]): Promise<ListedRules | undefined> {
  if ((await attempt(`iptables-${variant}-save`, "--version")).kind !== "seen") return undefined;
  const text = outputOf(await attempt(`iptables-${variant}-save`));
  return { variant, text, filter6: outputOf(await attempt(`ip6tables-${variant}-save`, "-t", "filter")) };
}

/** As `detectVariant` knows the variant of a host. */
const HINT = /^:(?:KUBE-IPTABLES-HINT|KUBE-KUBELET-CANARY) /m;

export function countOf({ variant, text }: ListedRules): RuleCount {
  const rules = (text ?? "").split("\n").filter((line) => line.startsWith("-A "));
  const proxy = rules.filter((line) => / KUBE-|^-A KUBE-/.test(line)).length;
  const dropping = droppingChains(text ?? "");
  const hinted = HINT.test(text ?? "");
  return { variant, hinted, proxy, others: rules.length - proxy, dropping, readable: text !== undefined };
}

function droppingChains(text: string): readonly string[] {
  const [, filter = ""] = /^\*filter\n([\s\S]*?)^COMMIT/m.exec(text) ?? [];
  return [...filter.matchAll(/^:(\S+) DROP /gm)].map(([, chain = ""]) => chain);
}
