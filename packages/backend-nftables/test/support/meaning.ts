import { type Hex, hostNumber, type NftTable, ruleText } from "@fairlead/netfilter/nft";
import { fewestOf } from "../../src/plan/classes.ts";

/**
 * What a table does with packets, as plain data, whatever slots endpoints have and whatever class a service is in: for
 * each element that leads on, the chain without its class, and the endpoints that stand under its key. Shared chains
 * that nobody needs any more are left out.
 *
 * @throws Error where an element leads to a class that does not have its endpoints, or has holes
 */
export function meaning(table: NftTable) {
  const sets = [...table.sets.values()]
    .filter(({ name }) => !POOL.test(name) && !CLIENTS.test(name))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  return {
    comment: table.comment,
    sets: Object.fromEntries(
      sets.map(({ name }) => [name, elementsOf(table, name)]).filter(([, list]) => list?.length),
    ),
    chains: Object.fromEntries(
      [...table.chains.values()]
        .filter(({ name }) => !SHARED.test(name))
        .sort((a, b) => (a.name < b.name ? -1 : 1))
        .map(({ name, base, rules }) => [name, { base, rules: rules.map((rule) => ruleText(rule, table)) }]),
    ),
    /** Endpoints that no element leads to. */
    lost: lost(table),
  };
}

const POOL = /^((?:nodeport-)?(?:local-)?)(?:endpoints-(\d+)|sticky-endpoints-(\d+))$/;
const CLIENTS = /^(?:nodeport-)?(?:local-)?(?:clients-\d+-\d+|sticky-\d+-slots)$/;
const SHARED =
  /^(?:external-)?(?:nodeport-)?(?:local-)?(?:endpoints-\d+|sticky-\d+-(?:slot-)?\d+)$|^external-(?:nodeport-)?local$/;
const CLASS = /^(?:external-)?((?:nodeport-)?(?:local-)?)(?:endpoints|(sticky-\d+))-(\d+)$/;

function elementsOf(table: NftTable, name: string) {
  const elements = [...(table.sets.get(name)?.elements.values() ?? [])];
  return elements
    .map(({ key, value, comment }) => {
      const chain = typeof value === "object" && "chain" in value ? value.chain : undefined;
      const [, prefix = "", sticky, size] = CLASS.exec(chain ?? "") ?? [];
      const led = size === undefined ? {} : { endpoints: endpointsOf(table, prefix, key, Number(size)), sticky };
      const to = size === undefined ? value : chain?.replace(/-\d+$/, "");
      if (sticky !== undefined) {
        const remembered = inSlots(table, new RegExp(`^${prefix}sticky-endpoints-(\\d+)$`), key);
        if (String(remembered) !== String(led.endpoints))
          throw new Error(`${name} ${key}: ${remembered} are remembered`);
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

function inSlots(table: NftTable, names: RegExp, key: Hex): readonly Hex[] {
  const found = [...table.sets.values()].filter(({ name }) => names.test(name));
  return found.flatMap(({ elements }) => (elements.get(key)?.value as Hex | undefined) ?? []).sort();
}

function lost(table: NftTable): readonly string[] {
  const led = new Set(
    [...table.sets.values()].flatMap(({ elements }) =>
      [...elements.values()].flatMap(({ key, value }) => {
        const chain = typeof value === "object" && "chain" in value ? value.chain : "";
        const [, prefix, sticky, size] = CLASS.exec(chain) ?? [];
        if (prefix === undefined) return [];
        return [`${prefix}endpoints-${size} ${key}`, ...(sticky === undefined ? [] : [`${prefix}sticky ${key}`])];
      }),
    ),
  );
  return [...table.sets.values()].flatMap(({ name, elements }) => {
    const [, prefix, size] = POOL.exec(name) ?? [];
    if (prefix === undefined) return [];
    const ids = [...elements.keys()].map((key) =>
      size === undefined ? `${prefix}sticky ${key}` : `${name} ${key.slice(0, -8)}`,
    );
    return ids.filter((id) => !led.has(id));
  });
}
