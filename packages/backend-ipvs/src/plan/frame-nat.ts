/** Rules of the nat table, and the jumps into all chains. */

import type { IPFamily, LocalTrafficDetector } from "@fairlead/core";
import type { Table, Target } from "@fairlead/netfilter";
import {
  comment,
  detectsPods,
  fromPods,
  hashedName,
  isServiceChain,
  jump,
  type Match,
  notFromPods,
  type Rule,
} from "@fairlead/netfilter";
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
} from "./context.ts";
import type { BarredAddress } from "./group.ts";
import type { SetKey } from "./sets.ts";
import { setName } from "./sets.ts";

/**
 * The chain that marks what does not come from this node's pods, where several cluster CIDRs have to be asked. It is
 * the same one as in iptables mode; its prefix lets kube-proxy's cleanup remove it.
 */
export const OFF_CLUSTER = hashedName("KUBE-EXT-", "traffic from outside the cluster CIDRs");

export function natChains(facts: FrameFacts): readonly ChainRules[] {
  return [
    { chain: MARK_MASQ, rules: [{ matches: [], target: { kind: "mark", value: facts.mark, mask: facts.mark } }] },
    ...offClusterChain(facts),
    { chain: LOAD_BALANCER, rules: loadBalancerRules(facts) },
    { chain: NODE_PORT, rules: nodePortRules(facts) },
    { chain: POSTROUTING, rules: postroutingRules(facts) },
    { chain: SERVICES, rules: servicesRules(facts) },
  ];
}

const toServices = to(SERVICES, comment("kubernetes service portals"));
const toPostrouting = to(POSTROUTING, comment("kubernetes postrouting rules"));
const toForward = to(FORWARD, comment("kubernetes forwarding rules"));
const toFirewall = to(PROXY_FIREWALL, comment("kube-proxy firewall rules"));

const firewallOfIptablesMode = to(
  PROXY_FIREWALL,
  { kind: "conntrack", states: ["NEW"] },
  comment("kubernetes load balancer firewall"),
);

/** The rules of a built-in chain that lead to ours, in their order. */
interface Jumps {
  readonly table: FrameTable;
  readonly chain: string;
  readonly rules: readonly Rule[];
  /** Those of them that iptables mode has word for word. */
  readonly shared: readonly Rule[];
  /** Jumps of iptables mode to chains that both modes have: they must not lead there in this mode. */
  readonly unwanted: readonly Rule[];
}

export const JUMPS: readonly Jumps[] = [
  { table: "nat", chain: "PREROUTING", rules: [toServices], shared: [toServices], unwanted: [] },
  { table: "nat", chain: "OUTPUT", rules: [toServices], shared: [toServices], unwanted: [] },
  {
    table: "nat",
    chain: "POSTROUTING",
    rules: [toPostrouting],
    shared: [toPostrouting],
    unwanted: [],
  },
  {
    table: "filter",
    chain: "INPUT",
    rules: [
      to(IPVS_FILTER, comment("kubernetes ipvs access filter")),
      toFirewall,
      to(NODE_PORT, comment("kubernetes health check rules")),
    ],
    shared: [],
    unwanted: [firewallOfIptablesMode],
  },
  {
    table: "filter",
    chain: "FORWARD",
    rules: [toFirewall, toForward],
    shared: [toForward],
    unwanted: [firewallOfIptablesMode],
  },
  {
    table: "filter",
    chain: "OUTPUT",
    rules: [to(IPVS_OUT_FILTER, comment("kubernetes ipvs access filter"))],
    shared: [],
    unwanted: [firewallOfIptablesMode],
  },
];

/** Chains of service ports and endpoints in iptables mode, kube-proxy's or ours. */
export function isGroupChainOfIptablesMode(chain: string): boolean {
  return isServiceChain(chain) && chain !== OFF_CLUSTER;
}

function offClusterChain({ detector }: FrameFacts): readonly ChainRules[] {
  const origins = fromPods(detector);
  if (origins.length < 2) return [];
  const inside = origins.map((origin): Rule => ({ ...origin, matches: [], target: RETURN }));
  return [{ chain: OFF_CLUSTER, rules: [...inside, { matches: [], target: jump(MARK_MASQ) }] }];
}

/** Load balancers' clients are masqueraded, but for services that want to know them. */
function loadBalancerRules({ family, filled }: FrameFacts): readonly Rule[] {
  const local = setRule("KUBE-LOAD-BALANCER-LOCAL", family, ["dst", "dst"], RETURN);
  const others: Rule = { matches: [], target: jump(MARK_MASQ) };
  return filled.has("KUBE-LOAD-BALANCER-LOCAL") ? [local, others] : [others];
}

/** Per protocol: clients of services that want to know them pass, those of the others are masqueraded. */
function nodePortRules({ family, filled }: FrameFacts): readonly Rule[] {
  const rule = (protocol: string, set: SetKey, flags: readonly "dst"[], target: Rule["target"]): Rule[] => {
    if (target === undefined || !filled.has(set)) return [];
    return [{ protocol: { value: protocol }, ...setRule(set, family, flags, target) }];
  };
  const masquerade = jump(MARK_MASQ);
  return [
    ...rule("tcp", "KUBE-NODE-PORT-LOCAL-TCP", ["dst"], RETURN),
    ...rule("tcp", "KUBE-NODE-PORT-TCP", ["dst"], masquerade),
    ...rule("udp", "KUBE-NODE-PORT-LOCAL-UDP", ["dst"], RETURN),
    ...rule("udp", "KUBE-NODE-PORT-UDP", ["dst"], masquerade),
    ...rule("sctp", "KUBE-NODE-PORT-LOCAL-SCTP-HASH", ["dst", "dst"], RETURN),
    ...rule("sctp", "KUBE-NODE-PORT-SCTP-HASH", ["dst", "dst"], masquerade),
  ];
}

/** Masquerades pods that reached themselves and what carries the mark; the mark goes, or a second pass would count. */
function postroutingRules({ family, mark, filled }: FrameFacts): readonly Rule[] {
  const hairpin = setRule("KUBE-LOOP-BACK", family, ["dst", "dst", "src"], { kind: "masquerade" });
  return [
    ...(filled.has("KUBE-LOOP-BACK") ? [hairpin] : []),
    { matches: [{ kind: "mark", negated: true, value: mark, mask: mark }], target: RETURN },
    { matches: [], target: { kind: "mark", value: mark, mask: 0 } },
    {
      matches: [comment("kubernetes service traffic requiring SNAT")],
      target: { kind: "masquerade", randomFully: true },
    },
  ];
}

function servicesRules(facts: FrameFacts): readonly Rule[] {
  const { family, filled } = facts;
  const only = (set: SetKey, rules: readonly Rule[]) => (filled.has(set) ? rules : []);
  const both = ["dst", "dst"] as const;
  const marked = setRule("KUBE-EXTERNAL-IP", family, both, jump(MARK_MASQ));
  return [
    { source: { cidr: family === "IPv6" ? "::1/128" : "127.0.0.0/8" }, matches: [], target: RETURN },
    ...only("KUBE-LOAD-BALANCER", [setRule("KUBE-LOAD-BALANCER", family, both, jump(LOAD_BALANCER))]),
    ...only("KUBE-CLUSTER-IP", [clusterIPRule(facts)]),
    ...only("KUBE-EXTERNAL-IP", [marked, ...acceptExternal("KUBE-EXTERNAL-IP", family)]),
    ...only("KUBE-EXTERNAL-IP-LOCAL", acceptExternal("KUBE-EXTERNAL-IP-LOCAL", family)),
    { matches: [{ kind: "addrtype", dstType: { value: "LOCAL" } }], target: jump(NODE_PORT) },
    ...only("KUBE-CLUSTER-IP", [acceptAll("KUBE-CLUSTER-IP", family)]),
    ...only("KUBE-LOAD-BALANCER", [acceptAll("KUBE-LOAD-BALANCER", family)]),
  ];
}

/**
 * Which senders are masqueraded on the way to a cluster IP: all, or all but pods of this node. If pods are not
 * recognized, only the node when it sends from a service's address, which it has on the service device.
 */
function clusterIPRule({ family, detector, masqueradeAll }: FrameFacts): Rule {
  const to = (chain: string) => setRule("KUBE-CLUSTER-IP", family, ["dst", "dst"], jump(chain));
  if (masqueradeAll) return to(MARK_MASQ);
  if (!detectsPods(detector)) return setRule("KUBE-CLUSTER-IP", family, ["src", "dst"], jump(MARK_MASQ));
  const origin = notFromPods(detector);
  return origin === undefined ? to(OFF_CLUSTER) : { ...origin, ...to(MARK_MASQ) };
}

/** What comes from other hosts, and what is for an address that this node holds, is let on to the virtual server. */
function acceptExternal(set: SetKey, family: IPFamily): readonly Rule[] {
  const { matches } = setRule(set, family, ["dst", "dst"], ACCEPT);
  const fromOutside: readonly Match[] = [
    { kind: "physdev", negated: true, is: "in" },
    { kind: "addrtype", srcType: { negated: true, value: "LOCAL" } },
  ];
  return [
    { matches: [...matches, ...fromOutside], target: ACCEPT },
    { matches: [...matches, { kind: "addrtype", dstType: { value: "LOCAL" } }], target: ACCEPT },
  ];
}

function acceptAll(set: SetKey, family: IPFamily): Rule {
  const { matches } = setRule(set, family, ["dst", "dst"], ACCEPT);
  return { matches: matches.filter(({ kind }) => kind !== "comment"), target: ACCEPT };
}

function to(chain: string, ...matches: readonly Match[]): Rule {
  return { matches, target: jump(chain) };
}

/** What the iptables rules around the virtual servers depend on. The services themselves are in the sets. */
export interface FrameFacts {
  readonly family: IPFamily;
  readonly mark: number;
  readonly detector: LocalTrafficDetector;
  /** Even this node's pods are masqueraded on their way to every cluster IP. */
  readonly masqueradeAll: boolean;
  /** Sets that have a member: the rules of most sets are there only while it is so. */
  readonly filled: ReadonlySet<SetKey>;
  readonly barred: readonly BarredAddress[];
}

export interface ChainRules {
  readonly chain: string;
  readonly rules: readonly Rule[];
}

/**
 * The tables that this mode has chains in. Nat comes first: packets are marked there before filter asks for the mark.
 */
export const TABLES = ["nat", "filter"] as const satisfies readonly Table[];

export type FrameTable = (typeof TABLES)[number];

/** Small makers of the parts that rules are put together from. */

export const RETURN: Target = { kind: "return" };

export const ACCEPT: Target = { kind: "accept" };

export type Flag = "src" | "dst";

/** A rule that asks a set, and says for people what the set is for. */
export function setRule(set: SetKey, family: IPFamily, flags: readonly Flag[], target: Target): Rule {
  const remark = REMARKS[set];
  const matches = remark === undefined ? [] : [comment(remark)];
  return { matches: [...matches, inSet(set, family, flags)], target };
}

/** `-m set --match-set NAME dst,dst` */
export function inSet(set: SetKey, family: IPFamily, flags: readonly Flag[]): Match {
  return { kind: "set", name: setName(set, family), flags };
}

const REMARKS: Readonly<Partial<Record<SetKey, string>>> = {
  "KUBE-LOOP-BACK": "Kubernetes endpoints dst ip:port, source ip for solving hairpin purpose",
  "KUBE-CLUSTER-IP": "Kubernetes service cluster ip + port for masquerade purpose",
  "KUBE-EXTERNAL-IP": "Kubernetes service external ip + port for masquerade and filter purpose",
  "KUBE-EXTERNAL-IP-LOCAL": "Kubernetes service external ip + port with externalTrafficPolicy=local",
  "KUBE-LOAD-BALANCER": "Kubernetes service lb portal",
  "KUBE-LOAD-BALANCER-FW": "Kubernetes service load balancer ip + port for load balancer with sourceRange",
  "KUBE-LOAD-BALANCER-LOCAL": "Kubernetes service load balancer ip + port with externalTrafficPolicy=local",
  "KUBE-LOAD-BALANCER-SOURCE-IP": "Kubernetes service load balancer ip + port + source IP for packet filter purpose",
  "KUBE-LOAD-BALANCER-SOURCE-CIDR":
    "Kubernetes service load balancer ip + port + source cidr for packet filter purpose",
  "KUBE-NODE-PORT-TCP": "Kubernetes nodeport TCP port for masquerade purpose",
  "KUBE-NODE-PORT-LOCAL-TCP": "Kubernetes nodeport TCP port with externalTrafficPolicy=local",
  "KUBE-NODE-PORT-UDP": "Kubernetes nodeport UDP port for masquerade purpose",
  "KUBE-NODE-PORT-LOCAL-UDP": "Kubernetes nodeport UDP port with externalTrafficPolicy=local",
  "KUBE-NODE-PORT-SCTP-HASH": "Kubernetes nodeport SCTP port for masquerade purpose with type 'hash ip:port'",
  "KUBE-NODE-PORT-LOCAL-SCTP-HASH":
    "Kubernetes nodeport SCTP port with externalTrafficPolicy=local with type 'hash ip:port'",
  "KUBE-HEALTH-CHECK-NODE-PORT": "Kubernetes health check node port",
};
