import { addressRange, familyOf, overlap, rangesOverlap } from "@fairlead/base";
import { type AdviceName, advice } from "./advice.ts";
import { bad, good, unknown, warning } from "./diagnosis.ts";
import type { Diagnosis, NamedCIDR, NodeFacts } from "./facts.ts";

/** Pairs that are named; the others are counted. */
const MOST_NAMED = 5;

/** CIDRs that must not have an address in common, or that two sources claim; one line of its own for each kind. */
export function overlaps({ cidrs }: NodeFacts): readonly Diagnosis[] {
  const [bridges, pairs] = split(overlapping(cidrs), (pair) => isOnBridge(pair, cidrs));
  const found: Diagnosis[] = KINDS.flatMap(({ is, state, check, name, what }) => {
    const these = pairs.filter(is);
    return these.length === 0 ? [] : [state(check, `overlapping: ${pairsText(these)}`, advice(name, what))];
  });
  if (bridges.length > 0) found.push(warning("CIDRs with nodes", `overlapping: ${pairsText(bridges)}`, BRIDGE));
  const rest = without(cidrs, found.length > 0);
  return found.length > 0 && rest.state === "good" ? found : [...found, rest];
}

const BRIDGE = advice(
  "pods-bridge",
  "nothing, if it is this node's address on its pods' bridge; else leave the nodes' addresses out of the CIDRs",
);

function split<T>(all: readonly T[], is: (one: T) => boolean): readonly [yes: readonly T[], no: readonly T[]] {
  return [all.filter(is), all.filter((one) => !is(one))];
}

/** A node has an address on its pods' bridge, which is in their CIDR, and another one that is the node's own. */
function isOnBridge(pair: Pair, cidrs: readonly NamedCIDR[]): boolean {
  const node = pair.find(({ use }) => use === "node");
  if (node === undefined || !uses(pair).has("pods") || isLearned(pair)) return false;
  const pods = cidrs.filter(({ use }) => use === "pods");
  const others = cidrs.filter(({ use, cidr }) => use === "node" && familyOf(cidr) === familyOf(node.cidr));
  return others.some(({ cidr }) => pods.every((one) => !overlap(one.cidr, cidr)));
}

type Pair = readonly [one: NamedCIDR, other: NamedCIDR];

/** Each learned CIDR stands in the list once for each source that says it. */
function overlapping(cidrs: readonly NamedCIDR[]): readonly Pair[] {
  const ranged = cidrs.map((named) => ({ named, range: addressRange(named.cidr) }));
  return ranged.flatMap((one, at) =>
    ranged
      .slice(at + 1)
      .filter((other) => mayNot(one.named, other.named) && rangesOverlap(one.range, other.range))
      .map((other): Pair => [one.named, other.named]),
  );
}

/** One network may have subnets within another one of its own. */
function mayNot(one: NamedCIDR, other: NamedCIDR): boolean {
  return (
    one.use !== other.use ||
    (one.source !== undefined && other.source !== undefined && one.source.id !== other.source.id)
  );
}

const uses = ([one, other]: Pair) => new Set([one.use, other.use]);
const isLearned = (pair: Pair) => pair.some(({ source }) => source !== undefined);

interface Kind {
  readonly is: (pair: Pair) => boolean;
  readonly state: typeof bad;
  readonly check: string;
  readonly name: AdviceName;
  readonly what: string;
}

/** The first that a pair meets is not the only one: none of them meets what another one does. */
const KINDS: readonly Kind[] = [
  {
    is: (pair) => uses(pair).has("services") && uses(pair).size > 1,
    state: bad,
    check: "CIDRs of services",
    name: "services-overlap",
    what:
      "networks must not overlap: give the pods, or the services, other addresses; a packet to a service cannot be distinguished " +
      "from one to a pod or a node, and a learned CIDR that overlaps is refused",
  },
  {
    is: (pair) => uses(pair).has("node") && uses(pair).size > 1 && !uses(pair).has("services") && !isLearned(pair),
    state: bad,
    check: "CIDRs with nodes",
    name: "nodes-overlap",
    what:
      "leave the nodes' addresses out of the CIDRs: a service whose endpoints are nodes (default/kubernetes) would be taken for " +
      "a pod's; or have the CIDRs learned (--exclude-cidrs-from), which leaves out nodes' addresses",
  },
  {
    is: (pair) => uses(pair).has("node") && uses(pair).size > 1 && !uses(pair).has("services") && isLearned(pair),
    state: warning,
    check: "CIDRs with nodes",
    name: "underlay",
    what: "nothing, if it is an underlay: endpoints at nodes' addresses decide nothing; else give the network addresses of its own",
  },
  {
    is: (pair) => uses(pair).has("pods") && uses(pair).has("excluded pods") && pair[0].cidr === pair[1].cidr,
    state: bad,
    check: "CIDRs on both sides",
    name: "one-side",
    what: "name the CIDR on one side: the owner of an address is ambiguous; ours takes precedence, or what was written over what was learned",
  },
  {
    is: (pair) => uses(pair).has("pods") && uses(pair).has("excluded pods") && pair[0].cidr !== pair[1].cidr,
    state: warning,
    check: "CIDRs within the other side's",
    name: "within-other",
    what: "nothing, if one network has its range within the other's: the longest prefix decides; else have them not overlap",
  },
  {
    is: (pair) => uses(pair).size === 1,
    state: warning,
    check: "CIDRs that two sources claim",
    name: "two-sources",
    what:
      "look which network gives out these addresses and take the range from the other: two pods may get one address, and only " +
      "one of them is reached",
  },
];

function pairsText(pairs: readonly Pair[]): string {
  const named = pairs.slice(0, MOST_NAMED).map(([one, other]) => `${cidrText(one)} and ${cidrText(other)}`);
  const more = pairs.length - named.length;
  return `${named.join("; ")}${more > 0 ? `; and ${more} more` : ""}`;
}

function cidrText({ use, cidr, source }: NamedCIDR): string {
  return source === undefined
    ? `${use} ${cidr}`
    : `${use} ${cidr} of ${source.id} (${source.objects.slice(0, 3).join(", ")})`;
}

/** @param said what overlaps has lines of its own */
function without(cidrs: readonly NamedCIDR[], said: boolean): Diagnosis {
  const check = "CIDRs";
  const shown = cidrs.slice(0, 2 * MOST_NAMED).map(({ use, cidr }) => `${use} ${cidr}`);
  const known = `${shown.join(", ")}${cidrs.length > shown.length ? ` and ${cidrs.length - shown.length} more` : ""}`;
  const missing = COMPARED.filter(([use]) => cidrs.every((one) => one.use !== use));
  if (missing.length === 0) return good(check, known);
  const lacking = missing.map(([use]) => use).join(" and ");
  const found = `those of ${lacking} are not known${known === "" || said ? "" : `; the others do not overlap: ${known}`}`;
  return unknown(check, found, advice("give-cidrs", missing.map(([, what]) => what).join(", ")));
}

/** Without one of these nothing is known about overlapping; excluded pods need not be there. */
const COMPARED: readonly (readonly [use: NamedCIDR["use"], what: string])[] = [
  ["pods", "give --cluster-cidr"],
  ["services", "give --service-cidr"],
  ["node", "install ip (iproute2)"],
];
