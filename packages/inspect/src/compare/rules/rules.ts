import type { RuleSetDifference, SavedChain, SavedRules, Table } from "@fairlead/netfilter";
import { compareChain } from "./compare-chain.ts";
import type { Finding } from "./finding.ts";
import { ownerOf, ownerOfAny } from "./owner.ts";

/** Chains of single services and endpoints, of any mode of kube-proxy and of Fairlead. */
const GROUP_CHAIN = /^KUBE-(?:SVC|SVL|SEP|FW|XLB|EXT)-/;

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
  const owner = GROUP_CHAIN.test(expected.name) ? (ownerOfAny(expected.texts) ?? ownerOfAny(actual.texts)) : undefined;
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
    if (!expected.has(chain.name) && GROUP_CHAIN.test(chain.name)) unwanted.push(chain);
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
      if (GROUP_CHAIN.test(name)) add(found, ownerOfAny(texts));
      else for (const text of texts) add(found, ownerOf(text));
      yield;
    }
  }
  return found;
}

function add(found: Set<string>, service: string | undefined): void {
  if (service !== undefined) found.add(service);
}

function serviceField(service: string | undefined): Pick<Finding, "service"> {
  return service === undefined ? {} : { service };
}
