/** Rules that lead a packet to its Service's chains. */

import {
  type AllowedSources,
  type EndpointSetName,
  type Frontend,
  refusesShare,
  type ServicePortGroup,
  type SourceClass,
} from "@fairlead/core";
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
import {
  destinationPort,
  exceptLoopback,
  host,
  protocolName,
  proxied,
  reject,
  resetting,
  toAddress,
} from "./rule-parts.ts";
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
  return group.frontends.some((frontend) => isGated(frontend) || refusal(group, frontend) !== undefined);
}

/** What a group adds to the shared chains, in the order of its frontends. */
export function dispatchRules(group: ServicePortGroup, context: RenderContext): readonly DispatchRule[] {
  const names = groupNames(group);
  const rules: DispatchRule[] = [];
  for (const frontend of group.frontends) {
    if (reachesEndpoints(frontend))
      rules.push(...excludedRules(group, frontend, "nat"), ...natRules(group, frontend, names, context));
    const verdict = refusal(group, frontend);
    if (isGated(frontend)) rules.push(...gateRules(group, frontend, verdict, names, context));
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

/** A frontend that only some sources may use. */
export type Gated = Frontend & { readonly gate: AllowedSources };

/** One of each kind that only some sources may use: the others of the kind have the same gate. */
export function gatedFrontends(group: ServicePortGroup): readonly Gated[] {
  const kinds = new Map<Frontend["kind"], Gated>();
  for (const frontend of group.frontends) if (isGated(frontend)) kinds.set(frontend.kind, frontend);
  return kinds.size === 0 ? UNGATED : [...kinds.values()];
}

const UNGATED: readonly Gated[] = [];

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
  if (frontend.address === undefined) return nodePortRules(group, frontend, names, context);
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

export const FRONTEND_LABELS = {
  "cluster-ip": "cluster IP",
  "external-ip": "external IP",
  "load-balancer": "loadbalancer IP",
  "node-port": "node port",
} as const satisfies Record<Frontend["kind"], string>;

const ENTRY_CHAINS = {
  internal: (frontend, names) => names.set[internalSet(frontend) ?? "cluster"],
  external: (frontend, names) => entryChain(frontend, names),
} as const satisfies Record<Frontend["reach"], (frontend: Frontend, names: GroupNames) => string>;

function entryChain(frontend: Frontend, names: GroupNames): string {
  return isGated(frontend) ? names.firewall(frontend.kind) : names.external;
}

/** Where filter asks for addresses; node ports have an end of the second one. */
const REFUSAL_CHAINS = {
  internal: SERVICES,
  external: EXTERNAL_SERVICES,
} as const satisfies Record<Frontend["reach"], string>;

function nodePortRules(
  group: ServicePortGroup,
  frontend: Frontend,
  names: GroupNames,
  context: RenderContext,
): readonly DispatchRule[] {
  const { port } = frontend;
  const protocol = { value: protocolName(group.protocol) };
  const matches = [comment(group.name), destinationPort(group.protocol, port)];
  const key = `${protocol.value} ${port}`;
  const target = jump(entryChain(frontend, names));
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

/**
 * Drops what the KUBE-FW chain of the frontend did not let on. What it let on and no endpoint takes comes here as well,
 * before the rules that refuse: where clients are to be refused, these are.
 */
function gateRules(
  group: ServicePortGroup,
  frontend: Gated,
  verdict: "reject" | "drop" | undefined,
  names: GroupNames,
  context: RenderContext,
): readonly DispatchRule[] {
  const key = frontendKey(group, frontend);
  const remark = `${group.name} traffic not accepted by ${names.firewall(frontend.kind)}`;
  const served = frontend.address === undefined ? exceptLoopback(context) : {};
  const dropped: Rule = { ...served, ...refusedPackets(group, frontend, remark), target: { kind: "drop" } };
  const admitted = verdict === "reject" ? sourcesOf(frontend.gate) : [];
  const refused = admitted.flatMap((source) =>
    refusals(group, frontend, "reject", context).map((rule) => ({ ...served, ...rule, source })),
  );
  return [...refused, dropped].map((rule) => entry("filter", PROXY_FIREWALL, key, rule));
}

/** The sources that a gate lets on, as rules name them. */
export function sourcesOf({ ranges, addresses }: AllowedSources): readonly NonNullable<Rule["source"]>[] {
  return [...ranges.map((cidr) => ({ cidr })), ...addresses.map(host)];
}

function refusalRules(
  group: ServicePortGroup,
  frontend: Frontend,
  verdict: "reject" | "drop",
  context: RenderContext,
): readonly DispatchRule[] {
  const key = frontendKey(group, frontend);
  const end = ({ address: "head", "node-port": "tail" } as const)[frontend.at];
  const rules = refusals(group, frontend, verdict, context);
  // Before KUBE-FORWARD, which lets on what nat has marked for masquerading; a gate refuses there by itself.
  if (refusesShare(group, frontend))
    return isGated(frontend) ? [] : rules.map((rule) => entry("filter", PROXY_FIREWALL, key, rule));
  return rules.map((rule) => entry("filter", REFUSAL_CHAINS[frontend.reach], key, rule, end));
}

function refusals(
  group: ServicePortGroup,
  frontend: Frontend,
  verdict: "reject" | "drop",
  context: RenderContext,
): readonly Rule[] {
  const isElsewhere = verdict === "drop" || group.cluster.length > 0;
  const why = refusesShare(group, frontend) ? "refuses a share" : `has no ${isElsewhere ? "local " : ""}endpoints`;
  const remark = `${group.name} ${why}`;
  const target: Target = verdict === "drop" ? { kind: "drop" } : reject(context.family);
  const refused = { ...refusedPackets(group, frontend, remark), target };
  return group.protocol === "TCP" && context.node.resetStaleTCP ? [resetting(refused), refused] : [refused];
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
function refusal(group: ServicePortGroup, frontend: Frontend): "reject" | "drop" | undefined {
  for (const source of CLASSES) {
    const { verdict } = frontend.treatments[source];
    if (verdict === "reject" || verdict === "drop") return verdict;
  }
  return refusesShare(group, frontend) ? "reject" : undefined;
}

/** An address that only some sources may use, and that nat sends on for those. */
function isGated(frontend: Frontend): frontend is Gated {
  return frontend.gate !== undefined && reachesEndpoints(frontend);
}
