/** Rules that lead a packet to its Service's chains. */

import type { EndpointSetName, Frontend, ServicePortGroup, SourceClass } from "@fairlead/core";
import { comment, jump, type Match, type Rule, type Table, type Target } from "@fairlead/netfilter";
import {
  EXTERNAL_SERVICES,
  type GroupNames,
  groupNames,
  LOCALHOST_ACCEPTED_COUNTER,
  NODE_PORTS,
  PROXY_FIREWALL,
  SERVICES,
} from "./group-names.ts";
import { destinationPort, protocolName, proxied, reject, resetting, toAddress } from "./rule-parts.ts";
import type { RenderContext } from "./settings.ts";

/** A rule of a group in one of the chains that all groups share. */
export interface DispatchRule {
  readonly table: Extract<Table, "nat" | "filter">;
  readonly chain: string;
  /**
   * The packets that the rule is about, with chain and table. Rules of different keys never match the same packet, and
   * a plan gives a frontend to one group only, so that order matters among the rules of one group and key and nowhere
   * else.
   */
  readonly key: string;
  /** The chain's end that it is put to: filter asks about addresses before it asks about node ports. */
  readonly end: "head" | "tail";
  readonly rule: Rule;
}

/** Whether a group has any rule in the shared chains of a table, without making them. */
export function dispatchesIn(group: ServicePortGroup, table: DispatchRule["table"]): boolean {
  if (table === "nat") return group.frontends.some(reachesEndpoints);
  if (group.healthCheckPort !== undefined) return true;
  return group.frontends.some((frontend) => isGated(frontend) || refusal(frontend) !== undefined);
}

/** What a group adds to the shared chains, in the order of its frontends. */
export function dispatchRules(group: ServicePortGroup, context: RenderContext): readonly DispatchRule[] {
  const names = groupNames(group);
  const rules: DispatchRule[] = [];
  for (const frontend of group.frontends) {
    if (reachesEndpoints(frontend))
      rules.push(...excludedRules(group, frontend, "nat"), ...natRules(group, frontend, names, context));
    if (isGated(frontend)) rules.push(gateRule(group, frontend, names));
    const verdict = refusal(frontend);
    if (verdict !== undefined) {
      rules.push(...excludedRules(group, frontend, "filter"), ...refusalRules(group, frontend, verdict, context));
    }
  }
  if (group.healthCheckPort !== undefined) rules.push(healthCheckRule(group, group.healthCheckPort));
  return rules;
}

/** The frontend that the group's KUBE-EXT chain follows; all external frontends of a group are treated alike. */
export function externalFrontend(group: ServicePortGroup): Frontend | undefined {
  return group.frontends.find((frontend) => frontend.reach === "external" && reachesEndpoints(frontend));
}

/** A frontend with the gate that all gated ones of the group share. */
export function gatedFrontend(group: ServicePortGroup): Frontend | undefined {
  return group.frontends.find(isGated);
}

const CLASSES: readonly SourceClass[] = ["outside", "node", "pod"];

/** The endpoint set that an internal frontend's packets go to, whatever their source. */
export function internalSet(frontend: Frontend): EndpointSetName | undefined {
  return CLASSES.map((source) => frontend.treatments[source]).find(proxied)?.set;
}

function natRules(
  group: ServicePortGroup,
  frontend: Frontend,
  names: GroupNames,
  context: RenderContext,
): readonly DispatchRule[] {
  if (frontend.address === undefined) return nodePortRules(group, frontend.port, names, context);
  const rule = {
    ...toAddress(frontend.address, group.protocol, frontend.port, `${group.name} ${FRONTEND_LABELS[frontend.kind]}`),
    target: jump(ENTRY_CHAINS[frontend.reach](frontend, names)),
  };
  return [entry("nat", SERVICES, frontendKey(group, frontend), rule)];
}

/** Clients that another network serves are sent back before anything happens to their packets. */
function excludedRules(
  group: ServicePortGroup,
  frontend: Frontend,
  table: DispatchRule["table"],
): readonly DispatchRule[] {
  const { excludedClients = [], address = "", port } = frontend;
  if (excludedClients.length === 0) return [];
  const packets = toAddress(address, group.protocol, port, `${group.name} another network serves its clients`);
  const matches = [...packets.matches, NOT_FROM_NODE];
  const key = frontendKey(group, frontend);
  return excludedClients.map((cidr) =>
    entry(table, SERVICES, key, { ...packets, matches, source: { cidr }, target: { kind: "return" } }),
  );
}

/** The node may have an address in the other network. */
const NOT_FROM_NODE: Match = { kind: "addrtype", srcType: { negated: true, value: "LOCAL" } };

const FRONTEND_LABELS = {
  "cluster-ip": "cluster IP",
  "external-ip": "external IP",
  "load-balancer": "loadbalancer IP",
  "node-port": "node port",
} as const satisfies Record<Frontend["kind"], string>;

const ENTRY_CHAINS = {
  internal: (frontend, names) => names.set[internalSet(frontend) ?? "cluster"],
  external: (frontend, names) => (isGated(frontend) ? names.firewall : names.external),
} as const satisfies Record<Frontend["reach"], (frontend: Frontend, names: GroupNames) => string>;

/** Where filter asks for addresses; node ports have an end of the second one. */
const REFUSAL_CHAINS = {
  internal: SERVICES,
  external: EXTERNAL_SERVICES,
} as const satisfies Record<Frontend["reach"], string>;

function nodePortRules(
  group: ServicePortGroup,
  port: number,
  names: GroupNames,
  context: RenderContext,
): readonly DispatchRule[] {
  const protocol = { value: protocolName(group.protocol) };
  const matches = [comment(group.name), destinationPort(group.protocol, port)];
  const key = `${protocol.value} ${port}`;
  const target = jump(names.external);
  const rule = entry("nat", NODE_PORTS, key, { protocol, matches, target });
  if (!context.localhost || !context.counters.has(LOCALHOST_ACCEPTED_COUNTER)) return [rule];
  const counted: Rule = {
    destination: { cidr: "127.0.0.0/8" },
    protocol,
    matches: [...matches, { kind: "nfacct", name: LOCALHOST_ACCEPTED_COUNTER }],
    target,
  };
  return [entry("nat", NODE_PORTS, key, counted), rule];
}

/** Drops what the group's KUBE-FW chain did not let on. */
function gateRule(group: ServicePortGroup, frontend: Frontend, names: GroupNames): DispatchRule {
  const remark = `${group.name} traffic not accepted by ${names.firewall}`;
  const rule = toAddress(frontend.address ?? "", group.protocol, frontend.port, remark);
  return entry("filter", PROXY_FIREWALL, frontendKey(group, frontend), { ...rule, target: { kind: "drop" } });
}

function refusalRules(
  group: ServicePortGroup,
  frontend: Frontend,
  verdict: "reject" | "drop",
  context: RenderContext,
): readonly DispatchRule[] {
  const remark = `${group.name} has no ${verdict === "drop" ? "local " : ""}endpoints`;
  const target: Target = verdict === "drop" ? { kind: "drop" } : reject(context.family);
  const refused = { ...refusedPackets(group, frontend, remark), target };
  const rules = group.protocol === "TCP" && context.node.resetStaleTCP ? [resetting(refused), refused] : [refused];
  const key = frontendKey(group, frontend);
  const end = ({ address: "head", "node-port": "tail" } as const)[frontend.at];
  return rules.map((rule) => entry("filter", REFUSAL_CHAINS[frontend.reach], key, rule, end));
}

function refusedPackets({ protocol }: ServicePortGroup, { address, port }: Frontend, remark: string): Rule {
  if (address !== undefined) return toAddress(address, protocol, port, remark);
  return {
    protocol: { value: protocolName(protocol) },
    matches: [comment(remark), { kind: "addrtype", dstType: { value: "LOCAL" } }, destinationPort(protocol, port)],
  };
}

/** The load balancer's health checks come from outside and must get in whatever INPUT's policy is. */
function healthCheckRule(group: ServicePortGroup, port: number): DispatchRule {
  const rule: Rule = {
    protocol: { value: "tcp" },
    matches: [comment(`${group.name} health check node port`), destinationPort("TCP", port)],
    target: { kind: "accept" },
  };
  return entry("filter", NODE_PORTS, `tcp ${port}`, rule);
}

function frontendKey(group: ServicePortGroup, frontend: Frontend): string {
  const port = `${protocolName(group.protocol)} ${frontend.port}`;
  return frontend.address === undefined ? port : `${port} ${frontend.address}`;
}

function entry(
  table: DispatchRule["table"],
  chain: string,
  packets: string,
  rule: Rule,
  end: DispatchRule["end"] = "head",
): DispatchRule {
  return { table, chain, key: `${table} ${chain} ${packets}`, end, rule };
}

/** Some source class gets to endpoints by this frontend, so nat has to catch its packets. */
function reachesEndpoints(frontend: Frontend): boolean {
  return CLASSES.some((source) => proxied(frontend.treatments[source]));
}

/**
 * What filter does with the frontend's packets that nat has not sent on. One verdict is enough for all source classes:
 * those that are proxied do not come to filter with the frontend's address anymore.
 */
function refusal(frontend: Frontend): "reject" | "drop" | undefined {
  for (const source of CLASSES) {
    const { verdict } = frontend.treatments[source];
    if (verdict === "reject" || verdict === "drop") return verdict;
  }
  return undefined;
}

/** An address that only some sources may use, and that nat sends on for those. */
function isGated(frontend: Frontend): boolean {
  return frontend.gate !== undefined && reachesEndpoints(frontend);
}
