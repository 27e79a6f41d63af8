import { isLoopback } from "@fairlead/base";
import { comment, fromPods, jump, type Rule, type Table } from "@fairlead/netfilter";
import type { ChainRules } from "./chain-rules.ts";
import { OFF_CLUSTER } from "./group-names.ts";
import {
  CANARY,
  EXTERNAL_SERVICES,
  FORWARD,
  INVALID_DROPPED_COUNTER,
  MARK_MASQ,
  NODE_PORTS,
  POSTROUTING,
  PROXY_FIREWALL,
  SERVICES,
} from "./names.ts";
import { host } from "./rule-parts.ts";
import type { RenderContext } from "./settings.ts";

/** Chains that all groups put rules into, by table. */
export const DISPATCH_CHAINS = {
  filter: [SERVICES, EXTERNAL_SERVICES, NODE_PORTS, PROXY_FIREWALL],
  nat: [SERVICES, NODE_PORTS],
} as const satisfies Partial<Record<Table, readonly string[]>>;

/** Every chain of a fixed name that this mode makes and cleanup removes, by table. */
export const FIXED_CHAINS = {
  filter: [...DISPATCH_CHAINS.filter, FORWARD, CANARY],
  nat: [...DISPATCH_CHAINS.nat, POSTROUTING, MARK_MASQ, CANARY],
  mangle: [CANARY],
} as const satisfies Partial<Record<Table, readonly string[]>>;

/** What endpoint and service chains jump to, so it has to be there before them. */
export function markChains(context: RenderContext): readonly ChainRules[] {
  const mark: ChainRules = {
    chain: MARK_MASQ,
    rules: [{ matches: [], target: { kind: "mark", value: context.mark, mask: context.mark } }],
  };
  const origins = fromPods(context.node.detector);
  if (origins.length < 2) return [mark];
  const inside = origins.map((origin): Rule => ({ ...origin, matches: [], target: { kind: "return" } }));
  return [mark, { chain: OFF_CLUSTER, rules: [...inside, { matches: [], target: jump(MARK_MASQ) }] }];
}

/** Masquerades what carries the mark, and takes the mark off so that a second pass does not masquerade again. */
export function postroutingChain(context: RenderContext): ChainRules {
  return {
    chain: POSTROUTING,
    rules: [
      {
        matches: [{ kind: "mark", negated: true, value: context.mark, mask: context.mark }],
        target: { kind: "return" },
      },
      { matches: [], target: { kind: "mark", value: context.mark, mask: 0 } },
      {
        matches: [comment("kubernetes service traffic requiring SNAT")],
        target: { kind: "masquerade", randomFully: true },
      },
    ],
  };
}

/**
 * Lets through what was translated here even where FORWARD's policy is DROP, and nothing that conntrack cannot place.
 */
export function forwardChain(context: RenderContext): ChainRules {
  const translated: Rule = {
    matches: [comment("kubernetes forwarding rules"), { kind: "mark", value: context.mark, mask: context.mark }],
    target: { kind: "accept" },
  };
  const established: Rule = {
    matches: [
      comment("kubernetes forwarding conntrack rule"),
      { kind: "conntrack", states: ["RELATED", "ESTABLISHED"] },
    ],
    target: { kind: "accept" },
  };
  const rules = [translated, established];
  return { chain: FORWARD, rules: context.tcpBeLiberal ? rules : [invalidRule(context), ...rules] };
}

/** A packet out of window must not reach a client untranslated: it would answer with a reset. */
function invalidRule(context: RenderContext): Rule {
  const invalid = { kind: "conntrack", states: ["INVALID"] } as const;
  const counter = { kind: "nfacct", name: INVALID_DROPPED_COUNTER } as const;
  return {
    matches: context.counters.has(INVALID_DROPPED_COUNTER) ? [invalid, counter] : [invalid],
    target: { kind: "drop" },
  };
}

/**
 * The packets from outside for 127.0.0.0/8 that route_localnet would let in; kubelet makes the same rule in the same
 * chain (kubernetes issue 90259).
 */
export const LOCALNET_RULE: Rule = {
  source: { negated: true, cidr: "127.0.0.0/8" },
  destination: { cidr: "127.0.0.0/8" },
  matches: [
    comment("block incoming localnet connections"),
    { kind: "conntrack", negated: true, states: ["RELATED", "ESTABLISHED", "DNAT"] },
  ],
  target: { kind: "drop" },
};

/** The last rules of nat KUBE-SERVICES: what no service address took and is for this node may be for a node port. */
export function nodePortJumps(context: RenderContext): readonly Rule[] {
  const remark = comment("kubernetes service nodeports; NOTE: this must be the last rule in this chain");
  const target = jump(NODE_PORTS);
  const { nodePortAddresses } = context.node;
  if (nodePortAddresses.kind === "all") {
    const matches = [remark, { kind: "addrtype", dstType: { value: "LOCAL" } } as const];
    return [{ ...exceptLoopback(context), matches, target }];
  }
  return nodePortAddresses.addresses
    .filter((address) => context.localhost || !isLoopback(address))
    .map((address) => ({ destination: host(address), matches: [remark], target }));
}

function exceptLoopback(context: RenderContext): Pick<Rule, "destination"> {
  if (context.family === "IPv6") return { destination: { negated: true, cidr: "::1/128" } };
  return context.localhost ? {} : { destination: { negated: true, cidr: "127.0.0.0/8" } };
}
