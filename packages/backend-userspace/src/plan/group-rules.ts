/** The rules of one group of Services: redirects to its relays. */

import { containsCIDR, hostCIDR, socketText } from "@fairlead/base";
import type {
  AllowedSources,
  Frontend,
  IPFamily,
  LocalTrafficDetector,
  Protocol,
  ServicePortGroup,
  Treatment,
} from "@fairlead/core";
import { comment, fromPods, type Match, type Rule, type Target } from "@fairlead/netfilter";
import {
  type ChainRule,
  EXTERNAL_SERVICES,
  exceptLoopback,
  NODEPORT_CONTAINER,
  NODEPORT_HOST,
  NODEPORT_NON_LOCAL,
  PORTALS_CONTAINER,
  PORTALS_HOST,
  PROXY_FIREWALL,
  SERVICES,
} from "./chains.ts";
import type { RelayPorts, RenderContext } from "./context.ts";
import { CLASSES, proxied, refusal, relayedSets } from "./relays.ts";

/** Everything that a group has in the chains of this mode, in order. */
export function groupRules(group: ServicePortGroup, ports: RelayPorts, context: RenderContext): readonly ChainRule[] {
  const rules: ChainRule[] = [];
  for (const frontend of group.frontends) {
    rules.push(...redirectRules(group, frontend, ports, context));
    rules.push(...refusalRules(group, frontend, ports, context));
  }
  return [...rules, ...entryRules(group, ports), ...healthCheckRules(group)];
}

/** Filter asks after nat: what still has the frontend's address there was sent to no relay. */
function refusalRules(
  group: ServicePortGroup,
  frontend: Frontend,
  ports: RelayPorts,
  context: RenderContext,
): readonly ChainRule[] {
  const verdict = refusal(frontend, (set) => ports(group, set) !== undefined);
  const { gate, reach, address } = frontend;
  const isGated = gate !== undefined && CLASSES.some((source) => proxied(frontend.treatments[source]));
  const gates = isGated ? gateRules(group, frontend, verdict, context) : [];
  if (verdict === undefined) return gates;
  const refused: ChainRule = {
    table: "filter",
    chain: REFUSAL_CHAINS[reach],
    rule: refusedBy(group, frontend, verdict, context),
  };
  if (address === undefined) return [...gates, refused];
  // Each goes to the top, so that the last one stands first.
  const excluded = fromExcluded(group.protocol, frontend, group.name);
  return [...gates, ...[refused, ...excluded.map((each) => ({ ...refused, rule: each }))].map(onTop)];
}

/** Clients that the source ranges do not let in are dropped; those that they let in and no relay takes, refused. */
function gateRules(
  group: ServicePortGroup,
  frontend: Frontend,
  verdict: "reject" | "drop" | undefined,
  context: RenderContext,
): readonly ChainRule[] {
  const admitted = verdict === "reject" ? allowed(frontend.gate) : [];
  const refused = admitted.map((origin) => ({ ...refusedBy(group, frontend, "reject", context), ...origin }));
  const dropped: Rule = { ...gatedPackets(group, frontend, context), target: { kind: "drop" } };
  return [...refused, dropped].map((rule): ChainRule => ({ table: "filter", chain: PROXY_FIREWALL, rule }));
}

function refusedBy(
  group: ServicePortGroup,
  frontend: Frontend,
  verdict: "reject" | "drop",
  { family }: RenderContext,
): Rule {
  const isElsewhere = verdict === "drop" || group.cluster.length > 0;
  const remark = `${group.name} has no ${isElsewhere ? "local " : ""}endpoints`;
  const rule = toFrontend(group.protocol, frontend, remark);
  const matches = frontend.address === undefined ? [...rule.matches, LOCAL_DESTINATION] : rule.matches;
  return { ...rule, matches, target: verdict === "drop" ? { kind: "drop" } : reject(family) };
}

/** Packets to a frontend that no rule of nat let on. */
function gatedPackets(group: ServicePortGroup, frontend: Frontend, context: RenderContext): Rule {
  const rule = toFrontend(group.protocol, frontend, `${group.name} traffic not accepted by source ranges`);
  if (frontend.address !== undefined) return rule;
  return { ...exceptLoopback(context), ...rule, matches: [...rule.matches, LOCAL_DESTINATION] };
}

const REFUSAL_CHAINS = {
  internal: SERVICES,
  external: EXTERNAL_SERVICES,
} as const satisfies Record<Frontend["reach"], string>;

function onTop(rule: ChainRule): ChainRule {
  return { ...rule, first: true };
}

const LOCAL_DESTINATION = { kind: "addrtype", dstType: { value: "LOCAL" } } as const;

/**
 * A relay takes what rules of nat have sent there and nothing else: a client of its port itself would get around
 * source ranges and policies. What is for clients from outside gets in whatever INPUT's policy is, as in iptables mode.
 */
function entryRules(group: ServicePortGroup, ports: RelayPorts): readonly ChainRule[] {
  return relayedSets(group).flatMap((set) => {
    const port = ports(group, set);
    if (port === undefined) return [];
    const rule = toPort(group.protocol, port, group.name);
    const guard: Rule = {
      ...rule,
      matches: [...rule.matches, { kind: "conntrack", negated: true, states: ["DNAT"] }],
      target: { kind: "drop" },
    };
    const accept: Rule = {
      ...rule,
      matches: [...rule.matches, { kind: "conntrack", module: "state", states: ["NEW"] }],
      target: { kind: "accept" },
    };
    const rules = group.frontends.some(({ reach }) => reach === "external") ? [guard, accept] : [guard];
    return rules.map((each): ChainRule => ({ table: "filter", chain: NODEPORT_NON_LOCAL, rule: each }));
  });
}

/** The load balancer's health checks come from outside and must get in whatever INPUT's policy is. */
function healthCheckRules({ healthCheckPort, name }: ServicePortGroup): readonly ChainRule[] {
  if (healthCheckPort === undefined) return [];
  const { protocol, matches } = toPort("TCP", healthCheckPort, "");
  const remark = comment(`${name} health check node port`);
  const rule: Rule = {
    ...(protocol && { protocol }),
    matches: [remark, ...matches.slice(1)],
    target: { kind: "accept" },
  };
  return [{ table: "filter", chain: NODEPORT_NON_LOCAL, rule }];
}

/** The part of a rule that says where its packets come from. */
type Origin = Pick<Rule, "source" | "inInterface">;

/** The rules that lead a frontend's packets to relays, each source class to the relay of its set. */
function* redirectRules(
  group: ServicePortGroup,
  frontend: Frontend,
  ports: RelayPorts,
  context: RenderContext,
): Generator<ChainRule> {
  const { pod, node, outside } = frontend.treatments;
  const packets = toFrontend(group.protocol, frontend, group.name);
  const rules = (chain: string, origins: readonly Origin[], target: Target | undefined) =>
    target === undefined ? [] : origins.map((origin): ChainRule => inNat(chain, { ...origin, ...packets, target }));
  const relay = (treatment: Treatment) => relayTarget(group, treatment, ports, context);
  const all = allowed(frontend.gate);
  const [container, host] = CHAINS[frontend.at];
  yield* fromExcluded(group.protocol, frontend, group.name).map((rule) => inNat(container, rule));
  if (!sameWay(pod, outside)) {
    const pods = allowedPods(context.node.detector, frontend.gate);
    yield* rules(container, pods, relay(pod) ?? { kind: "return" });
  }
  yield* rules(container, all, relay(outside));
  yield* rules(host, all, relay(node));
}

const CHAINS = {
  address: [PORTALS_CONTAINER, PORTALS_HOST],
  "node-port": [NODEPORT_CONTAINER, NODEPORT_HOST],
} as const satisfies Record<Frontend["at"], readonly [string, string]>;

function inNat(chain: string, rule: Rule): ChainRule {
  return { table: "nat", chain, rule };
}

function relayTarget(
  group: ServicePortGroup,
  treatment: Treatment,
  ports: RelayPorts,
  { host }: RenderContext,
): Target | undefined {
  const port = proxied(treatment) ? ports(group, treatment.set) : undefined;
  return port === undefined ? undefined : { kind: "dnat", to: socketText(host, port) };
}

/** Masquerading makes no difference here: endpoints see the node in any case. */
function sameWay(a: Treatment, b: Treatment): boolean {
  return a.verdict === b.verdict && (!proxied(a) || !proxied(b) || a.set === b.set);
}

function reject(family: IPFamily): Target {
  return { kind: "reject", with: family === "IPv6" ? "icmp6-port-unreachable" : "icmp-port-unreachable" };
}

const PROTOCOLS = { TCP: "tcp", UDP: "udp", SCTP: "sctp" } as const satisfies Record<Protocol, string>;

/** Packets to a port, whatever the address. */
function toPort(protocol: Protocol, port: number, remark: string): Rule {
  const kind = PROTOCOLS[protocol];
  return { protocol: { value: kind }, matches: [comment(remark), { kind, dport: { from: port, to: port } }] };
}

/** Packets to a frontend; of a node port those to its port, which only the node's own addresses lead to. */
function toFrontend(protocol: Protocol, { address, port }: Frontend, remark: string): Rule {
  const rule = toPort(protocol, port, remark);
  return address === undefined ? rule : { destination: { cidr: hostCIDR(address) }, ...rule };
}

/** Packets to a frontend from clients that another network serves: they go on before anything happens to them. */
function fromExcluded(protocol: Protocol, frontend: Frontend, remark: string): readonly Rule[] {
  const packets = toFrontend(protocol, frontend, remark);
  const matches = [...packets.matches, NOT_FROM_NODE];
  const { excludedClients = [] } = frontend;
  return excludedClients.map((cidr) => ({ source: { cidr }, ...packets, matches, target: { kind: "return" } }));
}

/** The node may have an address in the other network. */
const NOT_FROM_NODE: Match = { kind: "addrtype", srcType: { negated: true, value: "LOCAL" } };

/** All, or those that a frontend's source ranges accept: one entry for each rule that it takes. */
function allowed(sources: AllowedSources | undefined): readonly Origin[] {
  if (sources === undefined) return [{}];
  return [...sources.ranges, ...sources.addresses.map(hostCIDR)].map((cidr) => ({ source: { cidr } }));
}

/** Pods of this node among them. A rule asks for one source, so two CIDRs become what they have in common. */
function allowedPods(detector: LocalTrafficDetector, sources: AllowedSources | undefined): readonly Origin[] {
  return fromPods(detector).flatMap((pods) => allowed(sources).flatMap((gate) => both(pods, gate) ?? []));
}

/** Undefined: none is both. */
function both(pods: Origin, gate: Origin): Origin | undefined {
  if (pods.source === undefined || gate.source === undefined) return { ...gate, ...pods };
  const cidr = common(pods.source.cidr, gate.source.cidr);
  return cidr === undefined ? undefined : { source: { cidr } };
}

/** Of two CIDRs one contains the other, or they have nothing in common. */
function common(a: string, b: string): string | undefined {
  if (containsCIDR(a, b)) return b;
  return containsCIDR(b, a) ? a : undefined;
}
