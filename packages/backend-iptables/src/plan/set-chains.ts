/** Chains that choose one endpoint of a set. */

import { socketText } from "@fairlead/base";
import type { EndpointSetName, IPFamily, PlanEndpoint, ServicePortGroup } from "@fairlead/core";
import { comment, jump, type Match, type Rule, type RuleList, shareProbability } from "@fairlead/netfilter";
import { internalSet } from "./dispatch.ts";
import { type ChainNames, MARK_MASQ, type Page } from "./group-names.ts";
import { type ChainRules, host, masqueradeRules, protocolName } from "./rule-parts.ts";
import type { RenderContext } from "./settings.ts";

/** A set of endpoints that is not empty, and what its chains are rendered with. */
interface EndpointSet {
  readonly group: ServicePortGroup;
  readonly name: EndpointSetName;
  readonly context: RenderContext;
  readonly names: ChainNames;
}

/** The chain that spreads over a set, after the pages that it jumps to where it is large. */
export function* setChains(set: EndpointSet): Generator<ChainRules> {
  const { name, names } = set;
  const pages = names.pagers[name].pages(names.set[name]);
  const weights = weightsOf(set);
  for (const { chain, knownChain, endpoints } of pages) {
    const rules = () => spread(choices(endpoints, set, weights), totalOf(endpoints, weights), set);
    yield { chain, rules: ruleList(spreadSize(endpoints, set), rules) };
    if (!remembers(set)) continue;
    yield { chain: knownChain, rules: ruleList(endpoints.length, () => sticky(endpoints, set)) };
  }
  yield { chain: names.set[name], rules: setRules(set, pages, weights) };
}

/** What endpoints weigh; undefined: all alike. */
type Weights = ReadonlyMap<PlanEndpoint, number> | undefined;

function weightsOf({ group, name }: EndpointSet): Weights {
  const { endpoints } = group.weights?.[name] ?? {};
  return endpoints && new Map(group[name].map((endpoint, at) => [endpoint, endpoints[at] ?? 1]));
}

function totalOf(endpoints: readonly PlanEndpoint[], weights: Weights): number {
  if (weights === undefined) return endpoints.length;
  return endpoints.reduce((sum, endpoint) => sum + (weights.get(endpoint) ?? 1), 0);
}

/** The KUBE-SEP chains of a group: one for each endpoint that one of its sets has. */
export function* endpointChains(
  group: ServicePortGroup,
  context: RenderContext,
  names: ChainNames,
): Generator<ChainRules> {
  const shared = partsOf(group, context);
  for (const endpoint of usedEndpoints(group)) {
    const chain = names.endpoint(endpoint);
    names.pagers.cluster.step();
    const known = remembers({ group, context }) ? remember(chain, context) : undefined;
    yield { chain, rules: [hairpin(endpoint, shared), translation(endpoint, shared, known)] };
  }
}

/** Made while they are read: there is one for each endpoint or page, or two. */
function setRules(set: EndpointSet, pages: readonly Page[], weights: Weights): RuleList {
  const { group, name, context } = set;
  const endpoints = group[name];
  const internal = group.frontends.filter((one) => one.reach === "internal" && internalSet(one) === name);
  const masquerading = internal.flatMap((frontend) => [...masqueradeRules(group, frontend, context)]);
  const flat = pages.length === 0;
  const known = remembers(set) ? (flat ? endpoints : pages).length : 0;
  const total = totalOf(endpoints, weights);
  const refused = refusal(set, total);
  const size = masquerading.length + known + refused.length + spreadSize(flat ? endpoints : pages, set);
  return ruleList(size, function* () {
    yield* masquerading;
    if (known > 0) yield* flat ? sticky(endpoints, set) : knownFirst(pages);
    yield* refused;
    const pageChoice = ({ chain, endpoints }: Page) => ({ chain, weight: totalOf(endpoints, weights), remark: [] });
    yield* spread(flat ? choices(endpoints, set, weights) : pages.map(pageChoice), total, set);
  });
}

/** Keeps the share that is refused from being translated, wherever it came from: the table filter refuses it. */
function refusal({ group, name, context }: EndpointSet, total: number): readonly Rule[] {
  const { refused = 0 } = group.weights?.[name] ?? {};
  if (refused === 0 || context.lacking.has("statistic")) return [];
  const share = randomly(refused, refused + total);
  return [{ matches: [comment(`${group.name} refuses a share`), share], target: { kind: "accept" } }];
}

function ruleList(length: number, rules: () => Iterator<Rule>): RuleList {
  return { length, [Symbol.iterator]: rules };
}

/** Without the match that remembers clients a sticky Service is served as any other. */
function remembers({ group, context }: Pick<EndpointSet, "group" | "context">): boolean {
  return group.affinitySeconds !== undefined && !context.lacking.has("recent");
}

/** Who has been at an endpoint lately goes there again. */
function* sticky(endpoints: readonly PlanEndpoint[], set: EndpointSet): Generator<Rule> {
  const { affinitySeconds: seconds = 0 } = set.group;
  for (const endpoint of endpoints) {
    const chain = set.names.endpoint(endpoint);
    const known: Match = { ...recent(chain, set.context.family), op: "rcheck", seconds, reap: true };
    yield { matches: [...remark(endpoint, set), known], target: jump(chain) };
  }
}

/** A client that a page does not know comes back from it. */
function* knownFirst(pages: readonly Page[]): Generator<Rule> {
  for (const { knownChain } of pages) yield { matches: [], target: jump(knownChain) };
}

/** Where packets may go, and what that weighs; endpoints that weigh alike weigh 1. */
interface Choice {
  readonly chain: string;
  readonly weight: number;
  readonly remark: readonly Match[];
}

function* choices(endpoints: readonly PlanEndpoint[], set: EndpointSet, weights: Weights): Generator<Choice> {
  for (const endpoint of endpoints) {
    const weight = weights?.get(endpoint) ?? 1;
    yield { chain: set.names.endpoint(endpoint), weight, remark: remark(endpoint, set) };
  }
}

function remark(endpoint: PlanEndpoint, { group, context }: EndpointSet): readonly Match[] {
  if (context.large) return [];
  return [comment(`${group.name} -> ${socketText(endpoint.address, endpoint.port)}`)];
}

/**
 * Each rule takes its share of what the rules before it left: 1/n, 1/(n-1), … and the last one all.
 *
 * @param total the choices' weights together
 */
function* spread(choices: Iterable<Choice>, total: number, { context }: EndpointSet): Generator<Rule> {
  let left = total;
  for (const { chain, weight, remark } of choices) {
    if (context.lacking.has("statistic")) {
      yield { matches: remark, target: jump(chain) };
      return;
    }
    const share = shareOf(weight, left);
    left -= weight;
    yield { matches: remark.length === 0 ? share : [...remark, ...share], target: jump(chain) };
  }
}

/** How many rules `spread` gives. */
function spreadSize({ length }: readonly unknown[], { context }: EndpointSet): number {
  return context.lacking.has("statistic") ? 1 : length;
}

function shareOf(weight: number, left: number): readonly Match[] {
  if (weight === left) return ALL;
  if (weight > 1) return [randomly(weight, left)];
  const known = shares.get(left);
  if (known !== undefined) return known;
  const share: readonly Match[] = [randomly(1, left)];
  shares.set(left, share);
  return share;
}

function randomly(weight: number, left: number): Match {
  return { kind: "statistic", mode: "random", probability: shareProbability(weight, left) };
}

const ALL: readonly Match[] = [];
/** As many as the longest chain has endpoints: all services share them. */
const shares = new Map<number, readonly Match[]>();

/** What the rules of all endpoints of a group have in common: there may be ten thousand of them. */
interface Parts {
  readonly remark: readonly Match[];
  readonly protocol: NonNullable<Rule["protocol"]>;
  /** The last match of a rule that translates, and all of them where it remembers no clients. */
  readonly port: Match;
  readonly matches: readonly Match[];
}

function partsOf(group: ServicePortGroup, context: RenderContext): Parts {
  const protocol = protocolName(group.protocol);
  const remark = context.large ? [] : [comment(group.name)];
  const port: Match = { kind: protocol };
  return { remark, protocol: { value: protocol }, port, matches: [...remark, port] };
}

/** Those that have a chain, in the order of the chains. */
function* usedEndpoints(group: ServicePortGroup): Generator<PlanEndpoint> {
  yield* group.cluster;
  if (group.local.length === 0) return;
  const seen = new Set(group.cluster);
  for (const endpoint of group.local) if (!seen.has(endpoint)) yield endpoint;
}

/** An endpoint that reaches itself through the service must see another source than its own, or it answers itself. */
function hairpin({ address }: PlanEndpoint, { remark }: Parts): Rule {
  return { source: host(address), matches: remark, target: TO_MARK_MASQ };
}

const TO_MARK_MASQ = jump(MARK_MASQ);

function translation({ address, port }: PlanEndpoint, parts: Parts, remember: Match | undefined): Rule {
  return {
    protocol: parts.protocol,
    matches: remember === undefined ? parts.matches : [...parts.remark, remember, parts.port],
    target: { kind: "dnat", to: socketText(address, port) },
  };
}

function remember(chain: string, context: RenderContext): Match {
  return { ...recent(chain, context.family), op: "set" };
}

type Recent = Extract<Match, { kind: "recent" }>;

/** The list of clients that an endpoint's chain remembers for session affinity; each client on its own. */
function recent(name: string, family: IPFamily): Omit<Recent, "op"> {
  const mask = family === "IPv6" ? "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff" : "255.255.255.255";
  return { kind: "recent", name, mask, side: "rsource" };
}
