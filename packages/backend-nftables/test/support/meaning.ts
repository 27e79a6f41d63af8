import { type Hex, hostNumber, type NftTable, ruleText } from "@fairlead/netfilter/nft";
import { fewestOf } from "../../src/plan/placement.ts";

/**
 * What a table does with packets, as plain data, whatever slots endpoints have and whatever class a service is in: for
 * each element that leads on, the chain without its class, and the endpoints that stand under its key. Shared chains
 * that nothing needs any more are left out.
 *
 * @throws Error where an element leads to a class that does not have its endpoints, or has holes
 */
export function meaning(table: NftTable) {
  const hasRanges = (table.sets.get("firewall-ips")?.elements.size ?? 0) > 0;
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
        .filter(({ name }) => !SHARED.test(name) && (hasRanges || !RANGES.test(name)))
        .sort((a, b) => (a.name < b.name ? -1 : 1))
        .map(({ name, base, rules }) => [name, { base, rules: rules.map((rule) => ruleText(rule, table)) }]),
    ),
    /** Endpoints that no element leads to. */
    lost: lost(table),
  };
}

const POOL = /^((?:nodeport-)?(?:local-)?)endpoints-(\d+)$/;
const NUMBERED = /^(?:local-)?sticky-(?:clients|slots|endpoints)$|^sticky-(?:ips|nodeports)$/;
const SHARED =
  /^(?:external-)?(?:nodeport-)?(?:local-)?(?:endpoints-\d+|sticky-(?:gone-)?\d+(?:-\d+)?)$|^external-(?:nodeport-)?local$/;
/** What asks the map of source ranges. */
const RANGES = /^firewall-check$|-pre-dnat$/;
const CLASS = /^(?:external-)?((?:nodeport-)?(?:local-)?)(?:endpoints|(sticky-\d+))-(\d+)$/;
/** Digits of a number in a key or a value. */
const NUMBER = 8;

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
      return { key, comment, to, ...led };
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
        const [, prefix, sticky, size] = CLASS.exec(chain) ?? [];
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
