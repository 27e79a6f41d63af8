import type { Backend, Difference } from "@fairlead/core";
import { type Hex, hostNumber, NftBatch, type NftTable, ruleText } from "@fairlead/netfilter/nft";
import { RANGE_CHECKS } from "../../src/plan/frame-sets.ts";
import { fewestOf } from "../../src/plan/placement.ts";

/**
 * A table as plain data to compare, without what only a kernel that holds it says: handles, how long elements stay yet,
 * user data.
 */
export function described({ comment, chains, sets }: NftTable) {
  return {
    comment,
    chains: byName(chains, ({ base, comment, rules }) => ({
      base,
      comment,
      rules: rules.map(({ expressions, comment }) => ({ expressions, comment })),
    })),
    sets: byName(sets, ({ key, data, flags, timeout, comment, elements }) => ({
      key,
      data,
      flags: flags.toSorted(),
      timeout,
      comment,
      elements: [...elements.values()]
        .map(({ key, value, comment, intervalEnd }) => ({ key, value, comment, intervalEnd }))
        .sort((a, b) => (a.key < b.key || (a.key === b.key && a.intervalEnd) ? -1 : 1)),
    })),
  };
}

function byName<T, D>(objects: ReadonlyMap<string, T>, describe: (object: T) => D): Readonly<Record<string, D>> {
  const sorted = [...objects].sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(sorted.map(([name, object]) => [name, describe(object)]));
}

const batch = () => new NftBatch("ip", "kube-proxy");

/** What is done to a table by hand, and what is said of it; without chains and sets that a table may lack. */
export const DAMAGES: Readonly<Record<string, readonly [(table: NftTable) => NftBatch, string]>> = {
  "the table deleted": [() => batch().deleteTable(), "the table is missing"],
  "a chain flushed": [() => batch().flushChain("services"), "chain services differs in its rules (0, expected "],
  "a rule too many": [
    ({ chains }) => batch().addRule("services", { expressions: chains.get("services")?.rules[0]?.expressions ?? [] }),
    "chain services differs in its rules (",
  ],
  "a set flushed": [() => batch().flushSet("service-ips"), "set service-ips differs in its elements ("],
  "an element deleted": [
    ({ sets }) =>
      batch().deleteElements("cluster-ips", [...(sets.get("cluster-ips")?.elements.keys() ?? [])].slice(0, 1)),
    "set cluster-ips differs in its elements (1 missing)",
  ],
  "an element that leads elsewhere": [
    ({ sets }) => {
      const [key = ""] = sets.get("service-ips")?.elements.keys() ?? [];
      const value = { kind: "goto", chain: "reject-chain" } as const;
      return batch().deleteElements("service-ips", [key]).addElements("service-ips", [{ key, value }]);
    },
    "set service-ips differs in its elements (1 different)",
  ],
  "an element too many": [
    () => batch().addElements("cluster-ips", [{ key: "0a630909" }]),
    "set cluster-ips differs in its elements (1 too many)",
  ],
  "a chain at a hook": [
    () =>
      batch().addChain({
        name: "theirs",
        base: { type: "filter", hook: "forward", priority: -500, policy: "drop" },
      }),
    "chain theirs is at the hook forward",
  ],
};

/** A look that needs no plan. */
export function lookedAt(backend: Backend): Promise<Difference | undefined> {
  return backend.difference(undefined as never);
}

/**
 * What a table does with packets, as plain data, whatever slots endpoints have and whatever class a service is in: for
 * each element that leads on, the chain without its class, and the endpoints that stand under its key. Shared chains
 * that nothing needs any more are left out.
 *
 * @throws Error where an element leads to a class that does not have its endpoints, or has holes
 */
export function meaning(table: NftTable) {
  const sets = [...table.sets.values()]
    .filter(({ name }) => !POOL.test(name) && !NUMBERED.test(name))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  return {
    comment: table.comment,
    sets: Object.fromEntries(
      sets.map(({ name }) => [name, elementsOf(table, name)]).filter(([, list]) => list?.length),
    ),
    chains: Object.fromEntries(
      [...table.chains.values()]
        .filter(({ name }) => !SHARED.test(name) && !isIdle(table, name))
        .sort((a, b) => (a.name < b.name ? -1 : 1))
        .map(({ name, base, rules }) => [name, { base, rules: rules.map((rule) => ruleText(rule, table)) }]),
    ),
    /** Endpoints that no element leads to. */
    lost: lost(table),
  };
}

const POOL = /^((?:nodeport-)?(?:local-)?)endpoints-(\d+)$/;
const NUMBERED = /^(?:local-)?sticky-(?:clients|slots|endpoints)$|^sticky-(?:ips|nodeports)$|^weighted-.*\/sticky$/;
const SHARED =
  /^(?:external-)?(?:nodeport-)?(?:local-)?(?:endpoints-\d+|sticky-(?:gone-)?\d+(?:-\d+)?|(?:sticky-\d+-)?weighted-.*)$|^external-(?:nodeport-)?local$/;
const WEIGHTED =
  /^(?:external-)?((?:nodeport-)?(?:local-)?)sticky-\d+-(weighted-.*\/(?:cluster|local))(?:\/refusing)?$/;
const CLASS = /^(?:external-)?((?:nodeport-)?(?:local-)?)(?:endpoints|(sticky-\d+))-(\d+)$/;
/** Digits of a number in a key or a value. */
const NUMBER = 8;

/** It asks a map of source ranges, and no service has any. */
function isIdle({ sets }: NftTable, chain: string): boolean {
  const map = RANGE_CHECKS.get(chain);
  return map !== undefined && (sets.get(map)?.elements.size ?? 0) === 0;
}

function elementsOf(table: NftTable, name: string) {
  const elements = [...(table.sets.get(name)?.elements.values() ?? [])];
  return elements
    .map(({ key, value, comment }) => {
      const chain = typeof value === "object" && "chain" in value ? value.chain : undefined;
      const [, prefix = "", sticky, size] = CLASS.exec(chain ?? "") ?? [];
      const led = size === undefined ? {} : { endpoints: endpointsOf(table, prefix, key, Number(size)), sticky };
      const to = size === undefined ? value : chain?.replace(/-\d+$/, "");
      if (sticky !== undefined) {
        const remembered = rememberedEndpoints(table, prefix, key);
        if (String(remembered) !== String(led.endpoints))
          throw new Error(`${name} ${key}: ${remembered} can be remembered`);
      }
      const [, before = "", map] = WEIGHTED.exec(chain ?? "") ?? [];
      const drawn = map === undefined ? {} : { drawn: rememberedByWeight(table, `${map}/sticky`, before, key) };
      return { key, comment, to, ...led, ...drawn };
    })
    .sort((a, b) => (a.key < b.key ? -1 : 1));
}

function endpointsOf(table: NftTable, prefix: string, key: Hex, size: number): readonly Hex[] {
  const values: Hex[] = [];
  for (const element of table.sets.get(`${prefix}endpoints-${size}`)?.elements.values() ?? []) {
    if (!element.key.startsWith(key) || typeof element.value !== "string") continue;
    values[hostNumber(element.key.slice(key.length))] = element.value;
  }
  if (values.includes("") || Object.keys(values).length !== values.length) throw new Error(`${key}: slots have holes`);
  if (values.length < fewestOf(size) || values.length > size) {
    throw new Error(`${key}: ${values.length} endpoints in class ${size}`);
  }
  return values.sort();
}

/** What can be drawn for a frontend, each with the endpoint that it leads to, and no other. */
function rememberedEndpoints(table: NftTable, prefix: string, key: Hex): readonly Hex[] {
  const { number, local } = numberOf(table, prefix, key);
  const elements = (name: string) =>
    [...(table.sets.get(local + name)?.elements.values() ?? [])].filter((one) => one.key.startsWith(number));
  const members = new Map(elements("sticky-endpoints").map((one) => [one.key.slice(0, 2 * NUMBER), String(one.value)]));
  const drawn = elements("sticky-slots").map(({ key: slot, value }, _, { length }) => {
    if (hostNumber(slot.slice(NUMBER)) >= length) throw new Error(`${key}: slots have holes`);
    return members.get(String(value).slice(NUMBER)) ?? "nowhere";
  });
  if (drawn.length !== members.size) throw new Error(`${key}: ${members.size} can be remembered`);
  return drawn.sort();
}

/** The intervals with the endpoints that they lead to. */
function rememberedByWeight(table: NftTable, map: string, prefix: string, key: Hex): readonly string[] {
  const { number, local } = numberOf(table, prefix, key);
  const members = table.sets.get(`${local}sticky-endpoints`)?.elements.values() ?? [];
  const byNumber = new Map(Array.from(members, (one) => [one.key.slice(0, 2 * NUMBER), String(one.value)]));
  return Array.from(table.sets.get(map)?.elements.values() ?? [], ({ key: bound, value, intervalEnd }) => {
    const to = intervalEnd ? "end" : byNumber.get(String(value).slice(NUMBER));
    if (to === undefined || (value !== undefined && !String(value).slice(NUMBER).startsWith(number)))
      throw new Error(`${map} ${bound}: ${value} leads nowhere`);
    return `${bound} ${to}`;
  });
}

function numberOf(table: NftTable, prefix: string, key: Hex) {
  const frontends = table.sets.get(prefix.startsWith("nodeport-") ? "sticky-nodeports" : "sticky-ips");
  const number = String(frontends?.elements.get(key)?.value).slice(NUMBER);
  return { number, local: prefix.endsWith("local-") ? "local-" : "" };
}

function lost(table: NftTable): readonly string[] {
  const led = new Set(
    [...table.sets.values()].flatMap(({ elements }) =>
      [...elements.values()].flatMap(({ key, value }) => {
        const chain = typeof value === "object" && "chain" in value ? value.chain : "";
        const [, prefix, sticky, size] = CLASS.exec(chain) ?? WEIGHTED.exec(chain) ?? [];
        if (prefix === undefined) return [];
        const { number, local } = numberOf(table, prefix, key);
        const numbered = [`sticky ${key}`, `${local}sticky ${number}`];
        return [`${prefix}endpoints-${size} ${key}`, ...(sticky === undefined ? [] : numbered)];
      }),
    ),
  );
  return [...table.sets.values()].flatMap(({ name, elements }) => {
    const ids = [...elements.keys()].flatMap((key) => idsOf(name, key));
    return ids.filter((id) => !led.has(id));
  });
}

function idsOf(name: string, key: Hex): readonly string[] {
  if (POOL.test(name)) return [`${name} ${key.slice(0, -NUMBER)}`];
  if (name === "sticky-ips" || name === "sticky-nodeports") return [`sticky ${key}`];
  const [, local, numbered] = /^(local-)?(sticky-(?:slots|endpoints))$/.exec(name) ?? [];
  return numbered === undefined ? [] : [`${local ?? ""}sticky ${key.slice(0, NUMBER)}`];
}
