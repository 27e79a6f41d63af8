/** Which destinations two kernels treat by the same rules: nothing about them is followed. */

import {
  type ChainState,
  canonicalCIDR,
  type Rule,
  type RuleSet,
  renderRule,
  type SavedChain,
  type Table,
} from "@fairlead/netfilter";

interface ChainRef {
  readonly table: Table;
  readonly chain: string;
}

const HOOKS = ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"];

/**
 * Tells without a tracer where nothing has changed: all rules that packets to a place, and to wherever these rules send
 * them, may match are the same on both sides.
 */
export class SameRules {
  readonly #before: RuleSet;
  readonly #after: RuleSet;
  readonly #chains = new Map<string, ChainPair>();
  readonly #bases: readonly ChainRef[];

  constructor(before: RuleSet, after: RuleSet) {
    this.#before = before;
    this.#after = after;
    const tables = [...new Set([...before.keys(), ...after.keys()])];
    this.#bases = tables.flatMap((table) => HOOKS.map((chain): ChainRef => ({ table, chain })));
  }

  /** False also where it cannot be told. */
  for(protocol: string, heading: Heading): boolean {
    const headings = new Map([[headingText(heading), heading]]);
    for (let known = 0; known < headings.size; ) {
      known = headings.size;
      if (!this.#visitAll(protocol, headings)) return false;
    }
    return true;
  }

  /** Goes through all chains that can be reached; places that their rules translate to are added. */
  #visitAll(protocol: string, headings: Map<string, Heading>): boolean {
    const all = [...headings.values()];
    const queue = new Map(this.#bases.map((place) => [chainKey(place), place]));
    for (const place of queue.values()) {
      const rules = this.#chainAt(place).rulesFor(protocol, all);
      if (rules === undefined) return false;
      for (const { chain } of rules) if (chain !== undefined) addTo(queue, chainKey, { table: place.table, chain });
      for (const { to } of rules) {
        if (to === "unknown") return false;
        for (const heading of translated(to, all)) addTo(headings, headingText, heading);
      }
    }
    return true;
  }

  #chainAt(place: ChainRef): ChainPair {
    const key = chainKey(place);
    const { table, chain } = place;
    const at = (ruleSet: RuleSet) => ruleSet.get(table)?.chains.get(chain);
    const pair = this.#chains.get(key) ?? new ChainPair(at(this.#before), at(this.#after));
    this.#chains.set(key, pair);
    return pair;
  }
}

/** Where a packet is on its way to. */
export interface Heading {
  /** Canonical. */
  readonly address: string;
  readonly port: number;
}

/** Where a rule that translates to a place sends what was on its way to these. */
function translated(to: Heading | undefined, headings: readonly Heading[]): readonly Heading[] {
  if (to === undefined) return [];
  return to.port === 0 ? headings.map(({ port }) => ({ ...to, port })) : [to];
}

function addTo<Item>(all: Map<string, Item>, keyOf: (item: Item) => string, item: Item): void {
  const key = keyOf(item);
  if (!all.has(key)) all.set(key, item);
}

function chainKey({ table, chain }: ChainRef): string {
  return `${table} ${chain}`;
}

function headingText({ address, port }: Heading): string {
  return `${address} ${port}`;
}

type Chain = ChainState | SavedChain;

/** What of a rule decides whether a packet may match it, and where it leads. */
interface RuleFacts {
  readonly index: number;
  readonly text: string;
  readonly protocol: string | undefined;
  /** The one address that it is for; undefined: it may be for any. */
  readonly host: string | undefined;
  /** Likewise. */
  readonly port: number | undefined;
  /** The chain that it jumps or goes to. */
  readonly chain: string | undefined;
  /** Where it translates the destination to, port 0 where it leaves that; "unknown": to something else. */
  readonly to: Heading | "unknown" | undefined;
}

/** A chain on both sides. */
class ChainPair {
  readonly #before: FacingRules;
  /** Absent: the same rules as before. */
  readonly #after: FacingRules | undefined;
  readonly #comparable: boolean;

  constructor(before: Chain | undefined, after: Chain | undefined) {
    this.#comparable = (before === undefined) === (after === undefined) && before?.policy === after?.policy;
    const rules = before === undefined ? [] : rulesOf(before);
    this.#before = new FacingRules(rules);
    if (after !== undefined && !(before !== undefined && isSame(before, after)))
      this.#after = new FacingRules(rulesOf(after));
  }

  /** The rules that packets may match, if they are the same on both sides. */
  rulesFor(protocol: string, headings: readonly Heading[]): readonly RuleFacts[] | undefined {
    if (!this.#comparable) return undefined;
    const before = this.#before.of(protocol, headings);
    const after = this.#after?.of(protocol, headings) ?? before;
    const same = before.length === after.length && before.every(({ text }, at) => text === after[at]?.text);
    return same ? before : undefined;
  }
}

function isSame(before: Chain, after: Chain): boolean {
  return "hasTextsOf" in before && "hasTextsOf" in after && before.hasTextsOf(after);
}

/**
 * Finds in a chain the rules that packets to few places may match: dispatch chains have tens of thousands for others.
 */
class FacingRules {
  /** For any place, as far as it can be told at a glance. */
  readonly #general: RuleFacts[] = [];
  readonly #byHost = new Map<string, RuleFacts[]>();
  /** Of those that are for any address. */
  readonly #byPort = new Map<number, RuleFacts[]>();

  constructor(rules: readonly RuleFacts[]) {
    for (const rule of rules) {
      if (rule.host !== undefined) listAt(this.#byHost, rule.host).push(rule);
      else if (rule.port !== undefined) listAt(this.#byPort, rule.port).push(rule);
      else this.#general.push(rule);
    }
  }

  /** Those that packets of a protocol to one of these places may match, in their order. */
  of(protocol: string, headings: readonly Heading[]): readonly RuleFacts[] {
    const found = new Set(this.#general.filter((rule) => headings.some((one) => mayMatch(rule, protocol, one))));
    if (this.#byHost.size + this.#byPort.size === 0) return [...found];
    for (const heading of headings) {
      const own = [...(this.#byHost.get(heading.address) ?? []), ...(this.#byPort.get(heading.port) ?? [])];
      for (const rule of own) if (mayMatch(rule, protocol, heading)) found.add(rule);
    }
    return [...found].sort((a, b) => a.index - b.index);
  }
}

function listAt<Key>(lists: Map<Key, RuleFacts[]>, key: Key): RuleFacts[] {
  const known = lists.get(key) ?? [];
  lists.set(key, known);
  return known;
}

function rulesOf(chain: ChainState | SavedChain): readonly RuleFacts[] {
  const texts = "texts" in chain ? chain.texts : chain.rules.map(renderRule);
  return chain.rules.map((rule, index) => ({
    index,
    text: texts[index] ?? "",
    protocol: rule.protocol?.negated === true ? undefined : rule.protocol?.value,
    host: hostOf(rule),
    port: portOf(rule),
    chain: rule.target !== undefined && "chain" in rule.target ? rule.target.chain : undefined,
    to: translationOf(rule),
  }));
}

const PROTOCOLS: ReadonlySet<string> = new Set(["tcp", "udp", "sctp"]);

/** Whether a packet of this protocol to that place may match; without a doubt not, if false. */
function mayMatch(rule: RuleFacts, protocol: string, { address, port }: Heading): boolean {
  if (rule.protocol !== undefined && PROTOCOLS.has(rule.protocol) && rule.protocol !== protocol) return false;
  return (rule.host ?? address) === address && (rule.port ?? port) === port;
}

const HOST_LENGTH = /\/(?:32|128)$/;

function hostOf({ destination }: Rule): string | undefined {
  if (destination === undefined || destination.negated || !HOST_LENGTH.test(destination.cidr)) return undefined;
  return destination.cidr.replace(HOST_LENGTH, "");
}

function portOf({ matches }: Rule): number | undefined {
  const single = matches.flatMap((match) => {
    if (!("dport" in match) || match.dport === undefined) return [];
    const { negated, from, to } = match.dport;
    return negated || from !== to ? [] : [from];
  });
  return single[0];
}

const PLACE = /^(?:\[(?<six>[\da-f:.]+)\]|(?<four>[\d.]+))(?::(?<port>\d+))?$/;

function translationOf({ target }: Rule): RuleFacts["to"] {
  if (target?.kind === "redirect") return "unknown";
  if (target?.kind !== "dnat") return undefined;
  const { six, four, port = "0" } = PLACE.exec(target.to)?.groups ?? {};
  const address = six ?? four;
  if (address === undefined) return "unknown";
  return { address: canonicalCIDR(address).replace(HOST_LENGTH, ""), port: Number(port) };
}
