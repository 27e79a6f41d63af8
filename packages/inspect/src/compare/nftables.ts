/** How a table of nftables in a kernel differs from the one that a plan stands for, as data. */

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
 * How a table of a kernel differs from the one that a plan stands for, as data: chains, rules, sets, elements. In which
 * slots endpoints stand, which class a service is in, comments and remembered clients make no difference, nor does what
 * kube-proxy has for a service in chains of its own (`isKubeProxyTable`).
 * A step is a chain, an element or a frontend.
 *
 * @param actual undefined: there is no such table
 */
export function* compareNftables(
  expected: NftTable,
  actual: NftTable | undefined,
): Generator<void, readonly Finding[], void> {
  const name = `table ${expected.family} ${expected.name}`;
  if (actual === undefined) return [{ kind: "missing", where: name, what: "the table" }];
  const ownerOf = yield* ownersIn(expected, actual);
  const elsewhere = kubeProxyKeys(actual);
  const kubeProxys = elsewhere.size > 0;
  return [
    ...compareChains(expected, actual, kubeProxys),
    ...(yield* compareSets(expected, actual, ownerOf, kubeProxys)),
    ...(yield* comparePools(expected, actual, ownerOf, elsewhere)),
  ];
}

/** The services of which a table has anything, as its elements name them. */
export function servicesInTable({ sets }: NftTable): ReadonlySet<string> {
  return new Set(
    [...sets.values()].flatMap(({ elements }) => [...elements.values()].flatMap((one) => serviceOf(one) ?? [])),
  );
}

/**
 * Whether services of a table are in chains as only kube-proxy has them: whether it serves them rightly is told by
 * where packets go.
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

/**
 * How chains and their rules differ. Chains that nothing leads to make no difference.
 *
 * @param kubeProxys as `isKubeProxyTable` has it of the actual one
 */
function compareChains(expected: NftTable, actual: NftTable, kubeProxys: boolean): readonly Finding[] {
  const wanted = [...expected.chains.values()].flatMap((chain) => {
    const there = actual.chains.get(chain.name);
    // It needs no other chains than the hooks', and what of its own is missing packets tell.
    if (kubeProxys && (there === undefined ? chain.base === undefined : isFirewallChain(chain.name))) return [];
    if (there !== undefined) return compareChain(chain, there, expected, actual);
    return isOfClass(chain.name) ? [] : [{ kind: "missing", where: `chain ${chain.name}`, what: "the chain" } as const];
  });
  const led = chainsLedTo(actual);
  const isOthers = (name: string) => !expected.chains.has(name) && !isOfClass(name) && !isKubeProxyChain(name);
  const extra = [...actual.chains.values()].filter(
    ({ name, base }) => isOthers(name) && (base !== undefined || led.has(name)),
  );
  return [
    ...wanted,
    ...extra.map(({ name }): Finding => ({ kind: "extra", where: `chain ${name}`, what: "the chain" })),
  ];
}

function compareChain(wanted: NftChain, found: NftChain, expected: NftTable, actual: NftTable): readonly Finding[] {
  const where = `chain ${wanted.name}`;
  const [base, foundBase] = [baseText(wanted), baseText(found)];
  const bases: readonly Finding[] =
    base === foundBase ? [] : [{ kind: "different", where, what: `${foundBase}, expected ${base}` }];
  const texts = wanted.rules.map((rule) => ruleText(rule, expected));
  const foundTexts = found.rules.map((rule) => ruleText(rule, actual));
  if (texts.join("\n") === foundTexts.join("\n")) return bases;
  const missing = without(texts, foundTexts).map((what): Finding => ({ kind: "missing", where, what }));
  const extra = without(foundTexts, texts).map((what): Finding => ({ kind: "extra", where, what }));
  const moved: readonly Finding[] =
    missing.length + extra.length > 0 ? [] : [{ kind: "different", where, what: "its rules stand in another order" }];
  return [...bases, ...missing, ...extra, ...moved];
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

/**
 * How sets and their elements differ; what packets put into them is theirs, and pools are not looked at. A step is an
 * element.
 *
 * @param kubeProxys as `isKubeProxyTable` has it of the actual one
 */
function* compareSets(
  expected: NftTable,
  actual: NftTable,
  ownerOf: OwnerOf,
  kubeProxys: boolean,
): Generator<void, readonly Finding[], void> {
  const findings: (readonly Finding[])[] = [];
  for (const name of new Set([...expected.sets.keys(), ...actual.sets.keys()])) {
    const [wanted, found] = [expected.sets.get(name), actual.sets.get(name)];
    // Anonymous sets are compared as parts of the rules that they stand in.
    if (isOfClass(name) || [wanted, found].some((set) => set?.flags.includes("anonymous"))) continue;
    if (wanted !== undefined && found !== undefined) findings.push(yield* compareSet(wanted, found, ownerOf));
    else if (found !== undefined) findings.push(yield* compareElements(emptied(found), found, ownerOf));
    else if (wanted !== undefined && !kubeProxys) {
      findings.push([{ kind: "missing", where: nameOf(wanted), what: "the set" }]);
    }
  }
  return findings.flat();
}

function* compareSet(wanted: NftSet, found: NftSet, ownerOf: OwnerOf): Generator<void, readonly Finding[], void> {
  const [type, foundType] = [typeText(wanted), typeText(found)];
  if (type === foundType) return yield* compareElements(wanted, found, ownerOf);
  return [{ kind: "different", where: nameOf(wanted), what: `${foundType}, expected ${type}` }];
}

function emptied(set: NftSet): NftSet {
  return { ...set, elements: new Map() };
}

function* compareElements(wanted: NftSet, found: NftSet, ownerOf: OwnerOf): Generator<void, readonly Finding[], void> {
  if (found.flags.includes("dynamic")) return [];
  const finding = (kind: Finding["kind"], { key }: SetElement, what: string): Finding => {
    const service = ownerOf(key);
    return { kind, where: nameOf(wanted), what, ...(service !== undefined && { service }) };
  };
  const findings: Finding[] = [];
  for (const [id, element] of wanted.elements) {
    yield;
    const there = found.elements.get(id);
    const text = elementText(wanted, element);
    if (there === undefined) findings.push(finding("missing", element, text));
    else {
      const foundText = elementText(found, there);
      const isSame = text === foundText || kubeProxyChain(there) !== undefined;
      if (!isSame) findings.push(finding("different", element, `${foundText}, expected ${text}`));
    }
  }
  for (const [id, element] of found.elements) {
    yield;
    if (!wanted.elements.has(id)) findings.push(finding("extra", element, elementText(found, element)));
  }
  return findings;
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

/** Where an element leads that only kube-proxy writes; what becomes of packets there only the tracer can tell. */
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
