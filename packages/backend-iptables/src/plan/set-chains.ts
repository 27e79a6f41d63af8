import { socketText } from "@fairlead/base";
import type { EndpointSetName, PlanEndpoint, ServicePortGroup } from "@fairlead/core";
import { comment, jump, type Match, type Rule, type RuleList } from "@fairlead/netfilter";
import type { ChainRules } from "./chain-rules.ts";
import type { ChainNames } from "./group-names.ts";
import { masqueradeRules } from "./masquerade.ts";
import type { Page } from "./pages.ts";
import { internalSet } from "./reach.ts";
import { recent } from "./recent.ts";
import type { RenderContext } from "./settings.ts";
import { type Choice, spread } from "./spread.ts";

/** A set of endpoints that is not empty, and what its chains are rendered with. */
export interface EndpointSet {
  readonly group: ServicePortGroup;
  readonly name: EndpointSetName;
  readonly context: RenderContext;
  readonly names: ChainNames;
}

/** The chain that spreads over a set, after the pages that it jumps to where it is large. */
export function* setChains(set: EndpointSet): Generator<ChainRules> {
  const { group, name, names } = set;
  const pages = names.pagers[name].pages(names.set[name]);
  for (const { chain, knownChain, endpoints } of pages) {
    yield { chain, rules: ruleList(endpoints.length, () => spread(choices(endpoints, set), endpoints.length)) };
    if (group.affinitySeconds === undefined) continue;
    yield { chain: knownChain, rules: ruleList(endpoints.length, () => sticky(endpoints, set)) };
  }
  yield { chain: names.set[name], rules: setRules(set, pages) };
}

/** Made while they are read: there is one for each endpoint or page, or two. */
function setRules(set: EndpointSet, pages: readonly Page[]): RuleList {
  const { group, name, context } = set;
  const endpoints = group[name];
  const internal = group.frontends.filter((one) => one.reach === "internal" && internalSet(one) === name);
  const masquerading = internal.flatMap((frontend) => [...masqueradeRules(group, frontend, context)]);
  const flat = pages.length === 0;
  const size = flat ? endpoints.length : pages.length;
  const remembers = group.affinitySeconds !== undefined;
  return ruleList(masquerading.length + (remembers ? 2 * size : size), function* () {
    yield* masquerading;
    if (remembers) yield* flat ? sticky(endpoints, set) : knownFirst(pages);
    yield* spread(flat ? choices(endpoints, set) : pages.map(pageChoice), endpoints.length);
  });
}

function ruleList(length: number, rules: () => Iterator<Rule>): RuleList {
  return { length, [Symbol.iterator]: rules };
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

/** Whoever is not known to a page comes back from it. */
function* knownFirst(pages: readonly Page[]): Generator<Rule> {
  for (const { knownChain } of pages) yield { matches: [], target: jump(knownChain) };
}

function pageChoice({ chain, endpoints }: Page): Choice {
  return { chain, weight: endpoints.length, remark: [] };
}

function* choices(endpoints: readonly PlanEndpoint[], set: EndpointSet): Generator<Choice> {
  for (const endpoint of endpoints) {
    yield { chain: set.names.endpoint(endpoint), weight: 1, remark: remark(endpoint, set) };
  }
}

function remark(endpoint: PlanEndpoint, { group, context }: EndpointSet): readonly Match[] {
  if (context.large) return [];
  return [comment(`${group.name} -> ${socketText(endpoint.address, endpoint.port)}`)];
}
