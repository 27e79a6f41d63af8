/** How the rules of a kernel differ from those expected, by service. */

import {
  compareRuleSets,
  isServiceChain,
  type Rule,
  type RuleSetDifference,
  type SavedChain,
  type SavedRules,
  type Table,
} from "@fairlead/netfilter";

/**
 * How the rules of a kernel differ from those expected, but for what makes no difference: counters, the order of rules
 * that no packet meets both of, other people's chains, chains that nothing leads to anymore. A step is a chain.
 */
export function* compareRules(expected: SavedRules, actual: SavedRules): Generator<void, readonly Finding[], void> {
  const found: (readonly Finding[])[] = [];
  for (const [table, { chains }] of expected) {
    const present = actual.get(table)?.chains ?? new Map<string, SavedChain>();
    for (const chain of chains.values()) {
      found.push(chainFindings(table, chain, present.get(chain.name)));
      yield;
    }
    found.push(yield* extraChains(table, chains, present));
  }
  return found.flat();
}

/**
 * Whether anybody else has rules in the chains that every packet passes: then what is expected may be there and packets
 * fare otherwise all the same.
 */
export function hasForeignRules(expected: SavedRules, actual: SavedRules): boolean {
  return [...actual].some(([table, { chains }]) =>
    [...chains.values()].some((chain) => {
      const { name, policy } = chain;
      if (policy === undefined) return false;
      const own = new Set(expected.get(table)?.chains.get(name)?.texts);
      return policy === "DROP" || chain.texts.some((text) => !own.has(text) && !/ -j KUBE-\S+$/.test(` ${text}`));
    }),
  );
}

/** Services whose chains are there under other names, as another version would call them: their traffic decides. */
export function renamedServices(findings: readonly Finding[]): ReadonlySet<string> {
  const renamed = new Map<string, { missing: boolean; extra: boolean }>();
  for (const { kind, service, what } of findings) {
    if (service === undefined || what !== "the chain") continue;
    const seen = renamed.get(service) ?? { missing: false, extra: false };
    renamed.set(service, { missing: seen.missing || kind === "missing", extra: seen.extra || kind === "extra" });
  }
  return new Set([...renamed].flatMap(([service, { missing: gone, extra }]) => (gone && extra ? [service] : [])));
}

/** The services that any chain of a rule set is for. A step is a chain. */
export function* servicesIn(rules: SavedRules): Generator<void, ReadonlySet<string>, void> {
  const found = new Set<string>();
  for (const { chains } of rules.values()) {
    for (const { name, texts } of chains.values()) {
      if (!name.startsWith("KUBE-")) continue;
      if (isServiceChain(name)) add(found, ownerOfAny(texts));
      else for (const text of texts) add(found, ownerOf(text));
      yield;
    }
  }
  return found;
}

export interface Finding {
  /**
   * missing: it should be there; extra: it should not; different: something else is in its place; unknown: what becomes
   * of packets depends on what cannot be decided here.
   */
  readonly kind: "missing" | "extra" | "different" | "unknown";
  /** `namespace/name:port`, as comments and plans name it; absent: it belongs to no single service. */
  readonly service?: string;
  /** The object that it is about: `nat KUBE-SERVICES`, `ipset KUBE-CLUSTER-IP`, `virtual server TCP 10.96.0.1:443`. */
  readonly where: string;
  /** The rule, member or setting, as the tools print it. */
  readonly what: string;
  /** It comes of others' rules, which a proxy neither wants nor hinders: a note, and no difference. */
  readonly others?: true;
}

/** All findings about one service, and what they come to. */
export interface ServiceReport {
  /** Absent: what all services share. */
  readonly service?: string;
  /** missing: nothing of it is there; extra: nothing of it should be. */
  readonly kind: "missing" | "extra" | "different";
  readonly findings: readonly Finding[];
}

/**
 * Findings by service, in the order of names; what all services share comes first.
 *
 * @param known the services that should be there, `namespace/name:port`
 * @param present those of which the kernel has anything
 */
export function byService(
  findings: readonly Finding[],
  known: ReadonlySet<string>,
  present: ReadonlySet<string>,
): readonly ServiceReport[] {
  const groups = Map.groupBy(findings, ({ service }) => service ?? "");
  const names = [...groups.keys()].sort();
  return names.map((name) => {
    const own = groups.get(name) ?? [];
    if (name === "") return { kind: "different", findings: own };
    const kind = known.has(name) ? (present.has(name) ? "different" : "missing") : "extra";
    return { service: name, kind, findings: own };
  });
}

/** Chains that others write into as well: what is expected must be there, what else there is is theirs. */
const SHARED: ReadonlySet<string> = new Set([
  "KUBE-FIREWALL",
  "PREROUTING",
  "INPUT",
  "FORWARD",
  "OUTPUT",
  "POSTROUTING",
]);

/** The jump that kubelet keeps as well, where it likes: kube-proxy takes it wherever it finds it. */
const KUBELETS = /^-j KUBE-FIREWALL$/;

/** There to notice that another program flushed the table; what is in them is no matter. */
const CANARY = /^KUBE-(?:PROXY|KUBELET)-CANARY$/;

function chainFindings(table: Table, expected: SavedChain, actual: SavedChain | undefined): readonly Finding[] {
  const where = `${table} ${expected.name}`;
  if (actual === undefined) {
    // A built-in chain without a rule is not always printed.
    if (expected.policy !== undefined) return expected.texts.map((text) => missing(where, text));
    return [{ kind: "missing", where, what: "the chain", ...serviceField(ownerOfAny(expected.texts)) }];
  }
  if (CANARY.test(expected.name)) return [];
  const differences = compareChain(table, expected, actual);
  if (differences.length === 0) return [];
  const relevant = SHARED.has(expected.name) ? differences.filter((difference) => matters(difference)) : differences;
  const owner = isServiceChain(expected.name) ? (ownerOfAny(expected.texts) ?? ownerOfAny(actual.texts)) : undefined;
  return relevant.map((difference) => findingOf(where, difference, owner));
}

/** Of the differences of a chain that others write into as well. */
function matters(difference: RuleSetDifference): boolean {
  if (difference.kind === "order") return ![difference.first, difference.second].some((rule) => KUBELETS.test(rule));
  return difference.kind !== "rule-extra" && difference.kind !== "policy";
}

function missing(where: string, what: string): Finding {
  return { kind: "missing", where, what, ...serviceField(ownerOf(what)) };
}

function findingOf(where: string, difference: RuleSetDifference, owner: string | undefined): Finding {
  switch (difference.kind) {
    case "rule-missing":
    case "rule-extra": {
      const service = owner ?? ownerOf(difference.rule);
      return {
        kind: difference.kind === "rule-missing" ? "missing" : "extra",
        where,
        what: difference.rule,
        ...serviceField(service),
      };
    }
    case "order": {
      const { first, second } = difference;
      return {
        kind: "different",
        where,
        what: `${first} must stand before ${second}`,
        ...serviceField(owner ?? ownerOf(first)),
      };
    }
    case "policy":
      return { kind: "different", where, what: `policy ${difference.actual}, expected ${difference.expected}` };
    default:
      return { kind: "different", where, what: "the chain" };
  }
}

/** Unwanted chains of services that something still leads to. */
function* extraChains(
  table: Table,
  expected: ReadonlyMap<string, SavedChain>,
  actual: ReadonlyMap<string, SavedChain>,
): Generator<void, readonly Finding[], void> {
  const unwanted: SavedChain[] = [];
  for (const chain of actual.values()) {
    if (!expected.has(chain.name) && isServiceChain(chain.name)) unwanted.push(chain);
    yield;
  }
  if (unwanted.length === 0) return [];
  const led = new Set<string | undefined>();
  for (const { texts } of actual.values()) {
    for (const text of texts) led.add(/-[jg] (\S+)$/.exec(text)?.[1]);
    yield;
  }
  return unwanted
    .filter(({ name }) => led.has(name))
    .map(({ name, texts }) => ({
      kind: "extra",
      where: `${table} ${name}`,
      what: "the chain",
      ...serviceField(ownerOfAny(texts)),
    }));
}

function add(found: Set<string>, service: string | undefined): void {
  if (service !== undefined) found.add(service);
}

function serviceField(service: string | undefined): Pick<Finding, "service"> {
  return service === undefined ? {} : { service };
}

/** How two chains differ in meaning; chains of equal text do not, and are not even read. */
function compareChain(table: Table, expected: SavedChain, actual: SavedChain): readonly RuleSetDifference[] {
  if (expected.hasTextsOf(actual)) return [];
  if (expected.texts.length < LONG) return compare(table, expected.name, expected.rules, actual.rules);
  return compareByDestination(table, expected, actual);
}

const LONG = 64;

function sameTexts(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((text, at) => text === b[at]);
}

function compare(table: Table, name: string, expected: readonly Rule[], actual: readonly Rule[]) {
  const ruleSet = (rules: readonly Rule[]) => new Map([[table, { table, chains: new Map([[name, { name, rules }]]) }]]);
  return compareRuleSets(ruleSet(expected), ruleSet(actual));
}

/** Rules for one host's address, and those for more. */
interface Sorted {
  readonly hosts: ReadonlyMap<string, readonly Entry[]>;
  readonly general: readonly Entry[];
  /** No rule for a host comes after one for more. */
  readonly generalLast: boolean;
}

interface Entry {
  readonly rule: Rule;
  readonly text: string;
}

/**
 * Dispatch chains have thousands of rules, each for an address of its own, which may stand in any order: only those of
 * one address are compared with each other, as long as what is for all addresses stands at the end.
 */
function compareByDestination(table: Table, expected: SavedChain, actual: SavedChain): readonly RuleSetDifference[] {
  const [wanted, found] = [sorted(expected), sorted(actual)];
  if (!wanted.generalLast || !found.generalLast) return compare(table, expected.name, expected.rules, actual.rules);
  const addresses = new Set([...wanted.hosts.keys(), ...found.hosts.keys()]);
  const pairs = Array.from(
    addresses,
    (address) => [wanted.hosts.get(address) ?? [], found.hosts.get(address) ?? []] as const,
  );
  return [...pairs, [wanted.general, found.general] as const].flatMap(([before, after]) => {
    if (sameTexts(before.map(entryText), after.map(entryText))) return [];
    return compare(table, expected.name, before.map(ruleOf), after.map(ruleOf));
  });
}

const entryText = ({ text }: Entry) => text;
const ruleOf = ({ rule }: Entry) => rule;

function sorted({ rules, texts }: SavedChain): Sorted {
  const hosts = new Map<string, Entry[]>();
  const general: Entry[] = [];
  let generalLast = true;
  rules.forEach((rule, at) => {
    const entry = { rule, text: texts[at] ?? "" };
    const { cidr = "", negated = false } = rule.destination ?? {};
    if (negated || !/\/(?:32|128)$/.test(cidr)) {
      general.push(entry);
      return;
    }
    if (general.length > 0) generalLast = false;
    const known = hosts.get(cidr);
    if (known === undefined) hosts.set(cidr, [entry]);
    else known.push(entry);
  });
  return { hosts, general, generalLast };
}

/** `default/web:http`, and what the proxy's comments say before it. */
const NAMED =
  /--comment "?(?:masquerade traffic for |other traffic to )?([a-z0-9.-]+\/[a-z0-9.-]+(?::[a-zA-Z0-9.-]+)?)[" ]/;

/** The service that a rule is for, by its comment; undefined: for none, or for all. */
function ownerOf(rule: string): string | undefined {
  return NAMED.exec(`${rule} `)?.[1];
}

/** The service that any of the rules names. */
function ownerOfAny(rules: readonly string[]): string | undefined {
  for (const rule of rules) {
    const owner = ownerOf(rule);
    if (owner !== undefined) return owner;
  }
  return undefined;
}
