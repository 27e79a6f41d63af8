/** What a trace prints. */

import { socketText } from "@fairlead/base";
import type { Connection } from "@fairlead/kernel";
import { type RuleSet, renderRule, type SavedRules } from "@fairlead/netfilter";
import { ruleText } from "@fairlead/netfilter/nft";
import type { Assumption, Endpoint, Exploration, Outcome, Packet, Visit } from "@fairlead/trace";
import type { Style } from "../../frame/terminal.ts";
import { gatewayText } from "../../frame/text.ts";
import type { Owner } from "./packet.ts";

export interface Answer {
  readonly packet: Packet;
  /** Of the Service that the packet goes to. */
  readonly owner?: Owner | undefined;
  readonly exploration: Exploration;
  readonly connections: readonly Connection[];
  /** Whether the kernel was asked for routes. */
  readonly routes: "asked" | "not asked";
}

/** What is left open where no kernel was asked for routes. */
const NOT_ASKED =
  "\nRoutes, forwarding and rp_filter are not known here: whether a path leads on from this node is not known.\n";

/** @param lines whether the rules come from a text whose lines are worth naming */
export function answerText(
  { packet, owner, exploration, connections, routes }: Answer,
  rules: SavedRules,
  lines: boolean,
  style: Style,
): string {
  const place = placeIn(rules, lines);
  const ways = mergedWays(exploration.outcomes).map((way) => `\n${mergedText(way, place, style)}`);
  const open = exploration.undecided.map(
    ({ probability, problem, visits, assumed }) =>
      `\n${style.warn(`${percent(probability)} unknown`)}: ${problem.message}\n${wayText(visits, assumed, place)}`,
  );
  return [
    `${packetText(packet)}\n`,
    owner === undefined ? "" : `to ${gatewayText(owner.gateway, owner.route)}\n`,
    knownText(connections),
    ...ways,
    ...open,
    routes === "asked" ? "" : NOT_ASKED,
  ].join("");
}

type PlaceText = (visit: Visit) => string;

function placeIn(rules: SavedRules, lines: boolean): PlaceText {
  return (visit) => {
    const { table, chain, index } = visit;
    const line = "nft" in visit ? undefined : rules.get(visit.table)?.chains.get(chain)?.lines[index];
    return `${table} ${chain} ${index + 1}${lines && line !== undefined ? ` (line ${line})` : ""}`;
  };
}

function packetText({ protocol, source, sport, destination, dport, inInterface, state }: Packet): string {
  const from = inInterface === undefined ? "sent by this node" : `in by ${inInterface}`;
  const known = state === undefined ? "" : `, ${state.toLowerCase()}`;
  return `${protocol} ${socket({ address: source, ...(sport !== undefined && { port: sport }) })} → ${socket({ address: destination, ...(dport !== undefined && { port: dport }) })}, ${from}${known}`;
}

function mergedText({ outcome, ways }: MergedWay, place: PlaceText, style: Style): string {
  const { verdict, assumed = [], probability } = outcome;
  const paint = verdict === "accept" ? style.good : style.bad;
  const end = verdict === "accept" ? arrival(outcome) : `${verdict}${refusal(outcome)} ${lastPlace(outcome)}`;
  const when =
    assumed.length === 0
      ? ""
      : `, ${style.warn(`if ${assumed.map((one) => assumptionText(one, place)).join(" and ")}`)}`;
  const open =
    outcome.routeUnknown === undefined ? "" : `, ${style.warn(`if routes allow it (${outcome.routeUnknown})`)}`;
  const others = ways === 1 ? "" : style.dim(`  the likeliest of ${ways} ways there:\n`);
  return `${paint(`${percent(probability)} ${end}`)}${when}${open}\n${others}${wayText(outcome.visits, assumed, place)}`;
}

function arrival({ destination, masqueraded, source, outInterface, path, virtualServer }: Outcome): string {
  const parts = [
    `→ ${socket(destination)}`,
    path === "input" ? "on this node" : outInterface === undefined ? "" : `out by ${outInterface}`,
    masqueraded ? `masqueraded as ${source.address}` : "",
    virtualServer === undefined ? "" : "by a virtual server",
  ];
  return parts.filter((part) => part !== "").join(", ");
}

function lastPlace({ hook, table, noRoute }: Outcome): string {
  if (noRoute === undefined) return `in ${hook}, ${table}`;
  return `by routing ${hook === "OUTPUT" ? "at" : "after"} ${hook}: ${noRoute}`;
}

function refusal({ rejectWith }: Outcome): string {
  return rejectWith === undefined ? "" : ` (${rejectWith})`;
}

function assumptionText(assumption: Assumption, place: PlaceText): string {
  return `${place(assumption)} ${assumption.matched ? "matches" : "does not match"}`;
}

function wayText(visits: readonly Visit[], assumed: readonly Assumption[], place: PlaceText): string {
  let hook = "";
  const lines = visits.map((visit) => {
    const heading = visit.hook === hook ? "" : `  ${visit.hook}\n`;
    hook = visit.hook;
    const open = assumed.some(
      ({ chain, index, table }) => chain === visit.chain && index === visit.index && table === visit.table,
    );
    return `${heading}    ${place(visit)}${open ? " ?" : ""}  ${visitText(visit)}\n`;
  });
  return lines.join("");
}

/** The rule as its tool prints it. */
function visitText(visit: Visit): string {
  return "nft" in visit ? ruleText(visit.nft.rule, visit.nft.table) : renderRule(visit.rule);
}

function socket({ address, port }: Endpoint): string {
  return port === undefined ? address : socketText(address, port);
}

function percent(share: number): string {
  return `${Number((share * 100).toFixed(2))} %`;
}

export function answerData({ packet, owner, exploration, connections, routes }: Answer, rules: RuleSet) {
  const visit = (of: Visit) => {
    const { hook, table, chain, index } = of;
    const state = "nft" in of ? undefined : rules.get(of.table)?.chains.get(chain);
    const line = state !== undefined && "lines" in state && Array.isArray(state.lines) ? state.lines[index] : undefined;
    return { hook, table, chain, rule: index + 1, ...(typeof line === "number" && { line }), text: visitText(of) };
  };
  const assumption = (of: Assumption) => ({ ...visit(of), matched: of.matched, problem: of.problem });
  return {
    packet,
    ...owner,
    routes,
    connections,
    outcomes: exploration.outcomes.map(({ visits, assumed = [], ...outcome }) => ({
      ...outcome,
      assumed: assumed.map(assumption),
      visits: visits.map(visit),
    })),
    cannotTell: exploration.undecided.map(({ probability, problem, visits, assumed }) => ({
      probability,
      problem: problem.message,
      assumed: assumed.map(assumption),
      visits: visits.map(visit),
    })),
  };
}

interface MergedWay {
  /** The likeliest of them, with the probability of all. */
  readonly outcome: Outcome;
  readonly ways: number;
}

/**
 * Random draws lead to one end by many ways (nftables mode draws again where a draw is void): each end once, in the
 * order in which it comes first.
 */
export function mergedWays(outcomes: readonly Outcome[]): readonly MergedWay[] {
  return [...Map.groupBy(outcomes, endOf).values()].flatMap((alike) => {
    const [likeliest] = alike.toSorted((one, other) => other.probability - one.probability);
    if (likeliest === undefined) return [];
    const probability = alike.reduce((sum, one) => sum + one.probability, 0);
    return [{ outcome: { ...likeliest, probability }, ways: alike.length }];
  });
}

/** All that is said of an end: where two differ in any of it, they are two. */
function endOf({ verdict, rejectWith, noRoute, routeUnknown, hook, table, path, assumed = [], ...rest }: Outcome) {
  const { destination, masqueraded, source, outInterface, virtualServer } = rest;
  const place = verdict === "accept" ? path : [hook, table];
  const open = assumed.map(({ table: of, chain, index, matched }: Assumption) => [of, chain, index, matched]);
  return JSON.stringify([
    [verdict, rejectWith, noRoute, routeUnknown, place, open],
    [destination, masqueraded, masqueraded ? source.address : "", outInterface, virtualServer],
  ]);
}

/** How many of the places that known connections lead to are named. */
const NAMED = 5;

/** The connections that conntrack knows from there to there, one line for each place that they lead to. */
export function knownText(connections: readonly Connection[]): string {
  const places = Map.groupBy(connections, ({ reply: { source, sourcePort } }) => socketText(source, sourcePort));
  const sorted = [...places].sort(([, one], [, other]) => other.length - one.length);
  const lines = sorted
    .slice(0, NAMED)
    .map(([place, there]) => `known: ${countText(there)} → ${place}${offloadedText(there)}\n`);
  const left = sorted.slice(NAMED).flatMap(([, there]) => there);
  const more = sorted.length - NAMED;
  return `${lines.join("")}${more > 0 ? `known: ${left.length} more, to ${more} other places\n` : ""}`;
}

function countText([first, ...others]: readonly Connection[]): string {
  return others.length === 0 ? `port ${first?.original.sourcePort}` : `${others.length + 1} connections`;
}

/** A trace shows which rules there are; the packets of these connections do not get to them. */
function offloadedText(connections: readonly Connection[]): string {
  const count = connections.filter(({ offloaded }) => offloaded).length;
  if (count === 0) return "";
  const which = count === connections.length ? "offloaded" : `${count} of them offloaded`;
  return `, ${which}: packets of a connection on the fast path meet no rules`;
}
