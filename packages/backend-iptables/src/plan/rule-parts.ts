/** Parts that rules have in common, and the commands that carry rules. */

import { hostCIDR } from "@fairlead/base";
import type { Frontend, IPFamily, Protocol, ServicePortGroup, Treatment } from "@fairlead/core";
import {
  type AddressMatch,
  type ChainFill,
  type Command,
  comment,
  detectsPods,
  FIRST_PACKET,
  jump,
  type Match,
  notFromPods,
  type Rule,
  type RuleList,
  ruleKey,
  type Target,
} from "@fairlead/netfilter";
import { deletionRank, MARK_MASQ, OFF_CLUSTER } from "./group-names.ts";
import type { RenderContext } from "./settings.ts";

/** Small makers of the parts that rules are put together from. */

export function host(address: string): AddressMatch {
  return { cidr: hostCIDR(address) };
}

/** `-p tcp … -m tcp --dport 80`, the latter among the matches where the caller wants it. */
export function protocolName(protocol: Protocol): "tcp" | "udp" | "sctp" {
  return protocol === "TCP" ? "tcp" : protocol === "UDP" ? "udp" : "sctp";
}

export function destinationPort(protocol: Protocol, port: number): Match {
  return { kind: protocolName(protocol), dport: { from: port, to: port } };
}

export function reject(family: IPFamily): Target {
  return { kind: "reject", with: family === "IPv6" ? "icmp6-port-unreachable" : "icmp-port-unreachable" };
}

/** Resets, of the TCP packets that a rule is about, those in the middle of a connection. */
export function resetting(rule: Rule): Rule {
  const flags = { negated: true, ...FIRST_PACKET };
  const matches = rule.matches.map((match) => (match.kind === "tcp" ? { ...match, flags } : match));
  return { ...rule, matches, target: { kind: "reject", with: "tcp-reset" } };
}

/** Loopback addresses serve no node ports where what listens there is the node's own. */
export function exceptLoopback(context: RenderContext): Pick<Rule, "destination"> {
  if (context.family === "IPv6") return { destination: { negated: true, cidr: "::1/128" } };
  return context.localhost ? {} : { destination: { negated: true, cidr: "127.0.0.0/8" } };
}

/** What `-d ADDRESS -p PROTOCOL … --dport PORT` selects: packets to one frontend. */
export function toAddress(address: string, protocol: Protocol, port: number, remark: string): Rule {
  return {
    destination: host(address),
    protocol: { value: protocolName(protocol) },
    matches: [comment(remark), destinationPort(protocol, port)],
  };
}

/**
 * Marks packets to the cluster IP whose answer would not find its way back through this node: all of them, or those
 * that are not of its pods.
 */
export function* masqueradeRules(group: ServicePortGroup, frontend: Frontend, context: RenderContext): Generator<Rule> {
  const { pod, node, outside } = frontend.treatments;
  if (!masquerades(outside) && !masquerades(node)) return;
  const packets = toAddress(frontend.address ?? "", group.protocol, frontend.port, `${group.name} cluster IP`);
  if (masquerades(pod)) {
    yield { ...packets, target: jump(MARK_MASQ) };
    return;
  }
  if (!detectsPods(context.node.detector)) return;
  const origin = notFromPods(context.node.detector);
  yield origin === undefined
    ? { ...packets, target: jump(OFF_CLUSTER) }
    : { ...origin, ...packets, target: jump(MARK_MASQ) };
}

/** Restore commands, as data. */

export function append(chain: string, rule: Rule): Command {
  return { kind: "append", chain, rule };
}

export function remove(chain: string, rule: Rule): Command {
  return { kind: "delete", chain, rule };
}

/** Puts a rule to the top of a chain that has it nowhere. */
export function ensureRule(chain: string, rule: Rule, existing: readonly Rule[]): readonly Command[] {
  const text = ruleKey(rule);
  if (existing.some((other) => ruleKey(other) === text)) return [];
  return [{ kind: "insert", chain, position: 1, rule }];
}

/** Gives chains their rules, whatever they held. */
export function* fillChains(chains: Iterable<ChainRules>): Generator<ChainFill> {
  for (const { chain, rules } of chains) yield { kind: "fill", chain, rules, make: true };
}

/** Gives chains that were just made their rules. */
export function* appendRules(chains: Iterable<ChainRules>): Generator<ChainFill> {
  for (const { chain, rules } of chains) yield { kind: "fill", chain, rules, make: false };
}

/**
 * In the order in which they can be deleted one after the other; sorted by nothing else, as there may be a hundred
 * thousand.
 */
export function inDeletionOrder(chains: Iterable<string>): string[] {
  const byRank = [...Map.groupBy(chains, deletionRank)].sort(([a], [b]) => a - b);
  return byRank.flatMap(([, some]) => some);
}

export interface ChainRules {
  readonly chain: string;
  readonly rules: RuleList;
}

function masquerades(treatment: Frontend["treatments"]["pod"]): boolean {
  return proxied(treatment) && treatment.masquerade;
}

/** Plain questions about a frontend's treatments. */

export type Proxied = Extract<Treatment, { verdict: "proxy" }>;

export function proxied(treatment: Treatment): treatment is Proxied {
  return treatment.verdict === "proxy";
}
