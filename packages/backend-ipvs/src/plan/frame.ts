/** The chains and rules that are always there. */

import { hostCIDR } from "@fairlead/base";
import { comment, jump, type Rule } from "@fairlead/netfilter";
import {
  FORWARD,
  IPVS_FILTER,
  IPVS_OUT_FILTER,
  LOAD_BALANCER,
  MARK_MASQ,
  NODE_PORT,
  POSTROUTING,
  PROXY_FIREWALL,
  SERVICES,
  SOURCE_RANGES,
} from "./context.ts";
import {
  ACCEPT,
  type ChainRules,
  type FrameFacts,
  type FrameTable,
  inSet,
  natChains,
  OFF_CLUSTER,
  RETURN,
  setRule,
} from "./frame-nat.ts";
import type { BarredAddress } from "./group.ts";
import type { SetKey } from "./sets.ts";

/** Every chain that this mode makes and cleanup removes. */
export const CHAINS: Readonly<Record<FrameTable, readonly string[]>> = {
  nat: [SERVICES, POSTROUTING, NODE_PORT, LOAD_BALANCER, MARK_MASQ, OFF_CLUSTER],
  filter: [FORWARD, NODE_PORT, PROXY_FIREWALL, SOURCE_RANGES, IPVS_FILTER, IPVS_OUT_FILTER],
};

/** Every chain of this mode with its rules, each after those that it leads to. */
export function frameChains(facts: FrameFacts): Readonly<Record<FrameTable, readonly ChainRules[]>> {
  return { nat: natChains(facts), filter: filterChains(facts) };
}

/** Facts with which everything is let through and masqueraded that one of the two lets through or masquerades. */
export function unitedFacts(before: FrameFacts, after: FrameFacts): FrameFacts {
  const known = new Set(after.barred.map(barredKey));
  return {
    ...after,
    filled: new Set([...before.filled, ...after.filled]),
    barred: [...before.barred.filter((one) => !known.has(barredKey(one))), ...after.barred],
  };
}

export function sameFacts(a: FrameFacts, b: FrameFacts): boolean {
  return (
    a.masqueradeAll === b.masqueradeAll &&
    a.filled.size === b.filled.size &&
    [...a.filled].every((set) => b.filled.has(set)) &&
    JSON.stringify(a.detector) === JSON.stringify(b.detector) &&
    sameBarred(a.barred, b.barred)
  );
}

export function barredKey({ protocol, address, port }: BarredAddress): string {
  return `${protocol} ${address} ${port}`;
}

function sameBarred(a: readonly BarredAddress[], b: readonly BarredAddress[]): boolean {
  const known = new Set(b.map(barredKey));
  return a.length === b.length && a.every((one) => known.has(barredKey(one)));
}

function filterChains(facts: FrameFacts): readonly ChainRules[] {
  const { family, filled, barred } = facts;
  const firewall = setRule("KUBE-LOAD-BALANCER-FW", family, ["dst", "dst"], jump(SOURCE_RANGES));
  return [
    { chain: FORWARD, rules: forwardRules(facts) },
    { chain: NODE_PORT, rules: [setRule("KUBE-HEALTH-CHECK-NODE-PORT", family, ["dst"], ACCEPT)] },
    { chain: SOURCE_RANGES, rules: sourceRules(facts) },
    { chain: PROXY_FIREWALL, rules: filled.has("KUBE-LOAD-BALANCER-FW") ? [firewall] : [] },
    { chain: IPVS_FILTER, rules: accessRules(facts) },
    { chain: IPVS_OUT_FILTER, rules: barred.map(barredRule) },
  ];
}

/** Lets through what is translated here even where FORWARD's policy is DROP. */
function forwardRules({ mark }: FrameFacts): readonly Rule[] {
  return [
    { matches: [comment("kubernetes forwarding rules"), { kind: "mark", value: mark, mask: mark }], target: ACCEPT },
    {
      matches: [
        comment("kubernetes forwarding conntrack rule"),
        { kind: "conntrack", states: ["RELATED", "ESTABLISHED"] },
      ],
      target: ACCEPT,
    },
  ];
}

/** Only the sources that a load balancer's service names get by. */
function sourceRules({ family, filled }: FrameFacts): readonly Rule[] {
  const allowed = (["KUBE-LOAD-BALANCER-SOURCE-CIDR", "KUBE-LOAD-BALANCER-SOURCE-IP"] as const)
    .filter((set) => filled.has(set))
    .map((set) => setRule(set, family, ["dst", "dst", "src"], RETURN));
  return [...allowed, { matches: [], target: { kind: "drop" } }];
}

/**
 * The services' addresses count as the node's own. Without these rules whatever listens on the node would answer there
 * too (kubernetes issue 72236).
 */
function accessRules({ family }: FrameFacts): readonly Rule[] {
  const services: readonly SetKey[] = [
    "KUBE-LOAD-BALANCER",
    "KUBE-CLUSTER-IP",
    "KUBE-EXTERNAL-IP",
    "KUBE-EXTERNAL-IP-LOCAL",
  ];
  return [
    ...services.map((set): Rule => ({ matches: [inSet(set, family, ["dst", "dst"])], target: RETURN })),
    { matches: [inSet("KUBE-HEALTH-CHECK-NODE-PORT", family, ["dst"])], target: RETURN },
    {
      matches: [{ kind: "conntrack", states: ["NEW"] }, inSet("KUBE-IPVS-IPS", family, ["dst"])],
      target: { kind: "reject", with: family === "IPv6" ? "icmp6-port-unreachable" : "icmp-port-unreachable" },
    },
  ];
}

/**
 * The node reaches a load balancer's address with that very address as its source, after which no source range could
 * distinguish it from others; the virtual server is known by its connection (kubernetes issue 119656).
 */
function barredRule({ address, protocol, port }: BarredAddress): Rule {
  return {
    source: { cidr: hostCIDR(address) },
    matches: [{ kind: "ipvs", protocol, address, port }],
    target: { kind: "drop" },
  };
}
