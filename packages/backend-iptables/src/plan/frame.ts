/** The chains that are always there, and the jumps into them. */

import { isLoopback } from "@fairlead/base";
import type { ForwardingPlan } from "@fairlead/core";
import { comment, fromPods, jump, type Match, type Rule, type Table } from "@fairlead/netfilter";
import { dispatchesIn, dispatchRules } from "./dispatch.ts";
import {
  CANARY,
  EXTERNAL_SERVICES,
  FORWARD,
  INVALID_DROPPED_COUNTER,
  KUBELET_FIREWALL,
  MARK_MASQ,
  NODE_PORTS,
  OFF_CLUSTER,
  POSTROUTING,
  PROXY_FIREWALL,
  SERVICES,
} from "./group-names.ts";
import { type ChainRules, exceptLoopback, host } from "./rule-parts.ts";
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

export interface Wanted {
  readonly plan: ForwardingPlan;
  readonly context: RenderContext;
}

/** A chain of a fixed name and the rules of ours that it must hold. */
export interface FixedChain {
  readonly chain: string;
  /** In whatever order; given in one in which they can be written. */
  readonly rules: readonly Rule[];
  /** Behind `rules`, in this order. */
  readonly last: readonly Rule[];
  /** Else it belongs to others, and our rules stand among theirs. */
  readonly isOurs: boolean;
}

const CANARY_CHAIN: FixedChain = { chain: CANARY, rules: [], last: [], isOurs: true };

/** The chains of fixed names that a table must have. Yields after each group. */
export function* fixedChains(
  table: "filter" | "mangle" | "nat",
  { plan, context }: Wanted,
): Generator<void, readonly FixedChain[]> {
  if (table === "mangle") return [CANARY_CHAIN];
  const [head, tail] = [rulesByChain(table), rulesByChain(table)];
  for (const group of plan.groups.values()) {
    if (dispatchesIn(group, table)) {
      for (const entry of dispatchRules(group, context)) {
        if (entry.table === table) (entry.end === "head" ? head : tail).get(entry.chain)?.push(entry.rule);
      }
    }
    yield;
  }
  const last = (chain: string) => (table === "nat" && chain === SERVICES ? nodePortJumps(context) : []);
  return [
    CANARY_CHAIN,
    ...constantChains(table, context),
    ...DISPATCH_CHAINS[table].map((chain): FixedChain => {
      const rules = [...(head.get(chain) ?? []), ...(tail.get(chain) ?? [])];
      return { chain, rules, last: last(chain), isOurs: true };
    }),
    ...sharedChains(table, context),
  ];
}

/** Only a connection's first packet has to be asked about services; the others are conntrack's. */
const NEW: Match = { kind: "conntrack", states: ["NEW"] };

const toFirewall: Rule = { matches: [NEW, comment("kubernetes load balancer firewall")], target: jump(PROXY_FIREWALL) };
const toHealthChecks: Rule = { matches: [comment("kubernetes health check service ports")], target: jump(NODE_PORTS) };
const toExternal: Rule = {
  matches: [NEW, comment("kubernetes externally-visible service portals")],
  target: jump(EXTERNAL_SERVICES),
};
const toForward: Rule = { matches: [comment("kubernetes forwarding rules")], target: jump(FORWARD) };
const toServices: Rule = { matches: [NEW, comment("kubernetes service portals")], target: jump(SERVICES) };
const toNatServices: Rule = { matches: [comment("kubernetes service portals")], target: jump(SERVICES) };
const toPostrouting: Rule = { matches: [comment("kubernetes postrouting rules")], target: jump(POSTROUTING) };

/** The rules of a built-in chain that lead to ours, in their order. */
interface Jumps {
  readonly table: Extract<Table, "filter" | "nat">;
  readonly chain: string;
  readonly rules: readonly Rule[];
}

export const JUMPS: readonly Jumps[] = [
  { table: "filter", chain: "INPUT", rules: [toFirewall, toHealthChecks, toExternal] },
  { table: "filter", chain: "FORWARD", rules: [toFirewall, toForward, toServices, toExternal] },
  { table: "filter", chain: "OUTPUT", rules: [toFirewall, toServices] },
  { table: "nat", chain: "PREROUTING", rules: [toNatServices] },
  { table: "nat", chain: "OUTPUT", rules: [toNatServices] },
  { table: "nat", chain: "POSTROUTING", rules: [toPostrouting] },
];

/** Jumps to kubelet's chain: kubelet shares them, so the backend adds missing ones and changes no others. */
export const KUBELET_JUMP: Rule = { matches: [], target: jump(KUBELET_FIREWALL) };
export const KUBELET_JUMP_CHAINS: readonly string[] = ["INPUT", "OUTPUT"];

/** A packet out of window must not reach a client untranslated: it would answer with a reset. */
function invalidRule(context: RenderContext): Rule {
  const invalid = { kind: "conntrack", states: ["INVALID"] } as const;
  const counter = { kind: "nfacct", name: INVALID_DROPPED_COUNTER } as const;
  return {
    matches: context.counters.has(INVALID_DROPPED_COUNTER) ? [invalid, counter] : [invalid],
    target: { kind: "drop" },
  };
}

type ServiceTable = keyof typeof DISPATCH_CHAINS;

function rulesByChain(table: ServiceTable): ReadonlyMap<string, Rule[]> {
  return new Map(DISPATCH_CHAINS[table].map((chain) => [chain, []]));
}

/** Chains that hold the same rules however many services there are. */
function constantChains(table: ServiceTable, context: RenderContext): readonly FixedChain[] {
  const chains = table === "filter" ? [forwardChain(context)] : [postroutingChain(context), ...markChains(context)];
  return chains.map(({ chain, rules }) => ({ chain, rules: [], last: [...rules], isOurs: true }));
}

/** Chains of others with the rules in them that are ours. */
function sharedChains(table: ServiceTable, { localhost }: RenderContext): readonly FixedChain[] {
  const jumps = JUMPS.filter((one) => one.table === table);
  const kubelets = [
    { chain: KUBELET_FIREWALL, rules: localhost ? [LOCALNET_RULE] : [] },
    ...KUBELET_JUMP_CHAINS.map((chain) => ({ chain, rules: [KUBELET_JUMP] })),
  ];
  const shared = table === "nat" ? jumps : [...jumps, ...kubelets];
  return shared.map(({ chain, rules }) => ({ chain, rules, last: [], isOurs: false }));
}
