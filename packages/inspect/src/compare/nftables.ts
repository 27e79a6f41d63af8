/** How a table of nftables in a kernel differs from the one that a plan stands for, as a report shows it. */

import { differencesOf, RANGE_CHECKS, type Sameness, type TableDifference } from "@fairlead/backend-nftables";
import {
  type Hex,
  lengthOf,
  type NftChain,
  type NftSet,
  type NftTable,
  ruleText,
  type SetElement,
  valueText,
} from "@fairlead/netfilter/nft";
import { isOfClass, pooledEndpoints, verdictMeaning } from "./nftables-pools.ts";
import type { Finding } from "./rules.ts";

/**
 * How a table of a kernel differs from the one that a plan stands for: what a backend would repair, but that in which
 * slots endpoints stand, which class a service is in, comments and remembered clients make no difference, nor does what
 * kube-proxy has for a service in chains of its own (`isKubeProxyTable`).
 * A step is an element or a frontend.
 *
 * @param actual undefined: there is no such table
 */
export function* compareNftables(
  expected: NftTable,
  actual: NftTable | undefined,
): Generator<void, readonly Finding[], void> {
  const differences = yield* differencesOf(expected, actual, IN_MEANING);
  if (actual === undefined) return differences.flatMap((one) => commonFindings(one, expected, expected));
  const ownerOf = yield* ownersIn(expected, actual);
  const elsewhere = kubeProxyKeys(actual);
  const counted = differences.filter(elsewhere.size > 0 ? countsForKubeProxy : () => true);
  return [
    ...counted.filter(isInUse(actual)).flatMap((one) => commonFindings(one, expected, actual)),
    ...counted.flatMap((one) => elementFindings(one, ownerOf)),
    ...(yield* comparePools(expected, actual, ownerOf, elsewhere)),
  ];
}

export function servicesInTable({ sets }: NftTable): ReadonlySet<string> {
  return new Set(
    [...sets.values()].flatMap(({ elements }) => [...elements.values()].flatMap((one) => serviceOf(one) ?? [])),
  );
}

/**
 * Whether services of a table are in chains as only kube-proxy has them: whether it serves them correctly, only the
 * packets' ways show.
 */
export function isKubeProxyTable(table: NftTable): boolean {
  return kubeProxyKeys(table).size > 0;
}

/** Whose a key of a set is, by the service's name. */
type OwnerOf = (key: Hex) => string | undefined;

/**
 * Endpoints by frontend.
 *
 * @param elsewhere frontends that kube-proxy serves by chains of its own
 */
function* comparePools(
  expected: NftTable,
  actual: NftTable,
  ownerOf: OwnerOf,
  elsewhere: ReadonlySet<Hex>,
): Generator<void, readonly Finding[], void> {
  const wanted = yield* pooledEndpoints(expected);
  const found = yield* pooledEndpoints(actual);
  const findings: Finding[] = [];
  for (const id of new Set([...wanted.keys(), ...found.keys()])) {
    yield;
    const [want, have] = [wanted.get(id), found.get(id)];
    const { pool, key, frontend } = want ?? have ?? { pool: "", key: "", frontend: "" };
    if (elsewhere.has(key)) continue;
    const service = ownerOf(key);
    const finding = (kind: Finding["kind"]) => (endpoint: string) => ({
      kind,
      where: `${pool} of ${frontend}`,
      what: endpoint,
      ...(service !== undefined && { service }),
    });
    const [endpoints, foundEndpoints] = [want?.endpoints ?? new Set<string>(), have?.endpoints ?? new Set<string>()];
    findings.push(
      ...[...endpoints].filter((one) => !foundEndpoints.has(one)).map(finding("missing")),
      ...[...foundEndpoints].filter((one) => !endpoints.has(one)).map(finding("extra")),
    );
  }
  return findings;
}

const IN_MEANING: Sameness = {
  rulesKey: ({ rules }, table) => rules.map((rule) => ruleText(rule, table)).join("\n"),
  sameValue: (wanted, found, sets) =>
    kubeProxyChain(found) !== undefined || elementText(sets.wanted, wanted) === elementText(sets.found, found),
  // Endpoints of classes are compared by `comparePools`, anonymous sets as parts of the rules that they stand in.
  ignores: ({ name, flags }) => isOfClass(name) || flags.includes("anonymous"),
};

/** kube-proxy needs no other chains than the hooks', and packets show what of its own is missing. */
function countsForKubeProxy(one: TableDifference): boolean {
  if (one.object === "set") return one.kind !== "missing";
  if (one.object === "rules") return !isFirewallChain(one.wanted.name);
  if (one.object !== "chain" || one.kind === "extra") return true;
  return one.kind === "missing" ? one.wanted.base !== undefined : !isFirewallChain(one.wanted.name);
}

/** Chains that nothing leads to make no difference, nor do those of a class that is not needed, or not there yet. */
function isInUse(actual: NftTable): (one: TableDifference) => boolean {
  const led = chainsLedTo(actual);
  return (one) => {
    if (one.object !== "chain" || one.kind === "different") return true;
    if (one.kind === "missing") return !isOfClass(one.wanted.name);
    const { name, base } = one.found;
    if (isOfClass(name) || isKubeProxyChain(name) || asksNothing(actual, name)) return false;
    return base !== undefined || led.has(name);
  };
}

/** It asks for source ranges that no service has anymore: it goes with the next full sync. */
function asksNothing({ sets }: NftTable, chain: string): boolean {
  const map = RANGE_CHECKS.get(chain);
  return map !== undefined && (sets.get(map)?.elements.size ?? 0) === 0;
}

/** What all services share. */
function commonFindings(one: TableDifference, expected: NftTable, actual: NftTable): readonly Finding[] {
  switch (one.object) {
    case "table": {
      const where = `table ${expected.family} ${expected.name}`;
      if (one.kind === "missing") return [{ kind: "missing", where, what: "the table" }];
      return [{ kind: "different", where, what: "dormant: its rules are not in effect" }];
    }
    case "chain": {
      const { name } = one.kind === "extra" ? one.found : one.wanted;
      const where = `chain ${name}`;
      if (one.kind !== "different") return [{ kind: one.kind, where, what: "the chain" }];
      return [{ kind: "different", where, what: `${baseText(one.found)}, expected ${baseText(one.wanted)}` }];
    }
    case "rules":
      return ruleFindings(one.wanted, one.found, expected, actual);
    case "set":
      if (one.kind === "missing") return [{ kind: "missing", where: nameOf(one.wanted), what: "the set" }];
      if (one.kind === "extra") return [];
      return [
        {
          kind: "different",
          where: nameOf(one.wanted),
          what: `${typeText(one.found)}, expected ${typeText(one.wanted)}`,
        },
      ];
    case "flowtable": {
      // nft does not list whether it counts; where it is missing, and its devices, are compared where they are known.
      if (one.kind !== "different" || one.found.priority === one.wanted.priority) return [];
      const what = `priority ${one.found.priority}, expected ${one.wanted.priority}`;
      return [{ kind: "different", where: `flowtable ${one.wanted.name}`, what }];
    }
    default:
      return [];
  }
}

function ruleFindings(wanted: NftChain, found: NftChain, expected: NftTable, actual: NftTable): readonly Finding[] {
  const where = `chain ${wanted.name}`;
  const texts = wanted.rules.map((rule) => ruleText(rule, expected));
  const foundTexts = found.rules.map((rule) => ruleText(rule, actual));
  const missing = without(texts, foundTexts).map((what): Finding => ({ kind: "missing", where, what }));
  const extra = without(foundTexts, texts).map((what): Finding => ({ kind: "extra", where, what }));
  if (missing.length + extra.length > 0) return [...missing, ...extra];
  return [{ kind: "different", where, what: "its rules stand in another order" }];
}

function elementFindings(one: TableDifference, ownerOf: OwnerOf): readonly Finding[] {
  const finding = (set: NftSet, kind: Finding["kind"], { key }: SetElement, what: string): Finding => {
    const service = ownerOf(key);
    return { kind, where: nameOf(set), what, ...(service !== undefined && { service }) };
  };
  const extra = (set: NftSet) => (element: SetElement) => finding(set, "extra", element, elementText(set, element));
  if (one.object === "set" && one.kind === "extra" && !one.found.flags.includes("dynamic"))
    return [...one.found.elements.values()].map(extra(one.found));
  if (one.object !== "elements") return [];
  const { wanted: set, found: there } = one;
  return [
    ...one.missing.map((element) => finding(set, "missing", element, elementText(set, element))),
    ...one.different.map(({ wanted, found }) => {
      const what = `${elementText(there, found)}, expected ${elementText(set, wanted)}`;
      return finding(set, "different", wanted, what);
    }),
    ...one.extra.map(extra(there)),
  ];
}

function baseText({ base }: NftChain): string {
  if (base === undefined) return "no base chain";
  const { type, hook, priority, policy } = base;
  return `type ${type} hook ${hook} priority ${priority}; policy ${policy}`;
}

/** What of the first list is not in the second, where that has it as often. */
function without(texts: readonly string[], others: readonly string[]): readonly string[] {
  const left = [...others];
  return texts.filter((text) => {
    const at = left.indexOf(text);
    if (at >= 0) left.splice(at, 1);
    return at < 0;
  });
}

/** Chains that a rule or an element leads to. */
function chainsLedTo({ chains, sets }: NftTable): ReadonlySet<string> {
  const led = new Set<string>();
  for (const { rules } of chains.values()) {
    for (const { expressions } of rules) {
      for (const one of expressions) {
        if (one.kind === "immediate" && "verdict" in one && "chain" in one.verdict) led.add(one.verdict.chain);
      }
    }
  }
  for (const { elements } of sets.values()) {
    for (const { value } of elements.values()) {
      if (typeof value === "object" && "chain" in value) led.add(value.chain);
    }
  }
  return led;
}

function nameOf({ name, data }: NftSet): string {
  return `${data === undefined ? "set" : "map"} ${name}`;
}

function typeText({ key, data, flags, timeout }: NftSet): string {
  const value = data === undefined ? "" : ` : ${data === "verdict" ? data : data.join(" . ")}`;
  const more = [...flags].sort().join(",") + (timeout === undefined ? "" : ` timeout ${timeout}ms`);
  return `type ${key.join(" . ")}${value} ${more}`.trimEnd();
}

function elementText({ key: types, data }: NftSet, { key, value, intervalEnd }: SetElement): string {
  const text = intervalEnd ? `before ${valueText(types, key)}` : valueText(types, key);
  if (value === undefined || data === undefined) return text;
  if (typeof value === "object") return `${text} : ${verdictMeaning(value)}`;
  return data === "verdict" ? text : `${text} : ${valueText(data, value)}`;
}

/**
 * The services of frontends, by what the elements of either table say in their comments, or by the chain of kube-proxy
 * that they lead to; of an address only, the first service that has it. A step is an element.
 */
function* ownersIn(...tables: readonly NftTable[]): Generator<void, OwnerOf, void> {
  const owners = new Map<Hex, string>();
  for (const table of tables) {
    for (const set of table.sets.values()) {
      for (const [key, owner] of namedKeys(set)) {
        if (!owners.has(key)) owners.set(key, owner);
        yield;
      }
    }
  }
  return (key) => owners.get(key);
}

/** Keys of a verdict map with the services that they are of, and the addresses in them. */
function* namedKeys({ key: types, data, elements }: NftSet): Generator<readonly [key: Hex, owner: string]> {
  const [first] = types;
  if (data !== "verdict" || first === undefined) return;
  for (const element of elements.values()) {
    const { key } = element;
    const service = serviceOf(element);
    if (service === undefined) continue;
    yield [key, service];
    if (types.length === 3) yield [key.slice(0, 2 * lengthOf([first])), service];
  }
}

/** `namespace/name:port` */
function serviceOf(element: SetElement): string | undefined {
  const chain = element.comment === undefined ? kubeProxyChain(element) : undefined;
  return chain === undefined ? element.comment : serviceOfChain(chain);
}

/**
 * kube-proxy's chains of single services and endpoints, `service-2QRHZV4L-default/kubernetes/tcp/https`: Fairlead has
 * maps of endpoints in their place. All else of the table both have alike.
 */
const OWN_CHAIN = /^(?:service|external|local|endpoint)-[A-Z2-7]{8}-(?:([^/]+\/[^/]+)\/[^/]+\/([^/]*)$)?/;

function isKubeProxyChain(name: string): boolean {
  return OWN_CHAIN.test(name);
}

/** Where an element leads that only kube-proxy writes; only the tracer knows what becomes of packets there. */
function kubeProxyChain({ value }: SetElement): string | undefined {
  return typeof value === "object" && "chain" in value && isKubeProxyChain(value.chain) ? value.chain : undefined;
}

/** `namespace/name:port` of a chain of kube-proxy's; undefined: the kernel had no room for all of its name. */
function serviceOfChain(chain: string): string | undefined {
  const [, service, port = ""] = OWN_CHAIN.exec(chain) ?? [];
  return service === undefined || port === "" ? service : `${service}:${port}`;
}

/** Chains of source ranges, which both name alike and write in other rules. */
function isFirewallChain(name: string): boolean {
  return name.startsWith("firewall-");
}

/** The keys of elements that lead to kube-proxy's chains: none where only Fairlead has written the table. */
function kubeProxyKeys({ sets }: NftTable): ReadonlySet<Hex> {
  const all = [...sets.values()].flatMap(({ elements }) => [...elements.values()]);
  return new Set(all.filter((one) => kubeProxyChain(one) !== undefined).map(({ key }) => key));
}
