import type { NodeState, RuleCount } from "@fairlead/inspect";

/** What one variant of iptables holds, as its own tool lists it. */
export interface ListedRules {
  readonly variant: RuleCount["variant"];
  /** Of IPv4, all tables; undefined: it may not be read. */
  readonly text: string | undefined;
  /** Of IPv6; undefined: it may not be read, or there is no tool for it. */
  readonly ipv6: string | undefined;
}

/** The variants that are installed. */
export function listedRules({ rules = [] }: NodeState): readonly ListedRules[] {
  return (["nft", "legacy"] as const).flatMap((variant) => {
    const [ipv4, ipv6] = (["IPv4", "IPv6"] as const).map((family) =>
      rules.find((one) => one.variant === variant && one.family === family),
    );
    return ipv4 === undefined || ipv4.notInstalled ? [] : [{ variant, text: ipv4.save, ipv6: ipv6?.save }];
  });
}

/** As the variant of a host is known. */
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
