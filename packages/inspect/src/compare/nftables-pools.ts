/**
 * Endpoints in a table of nftables by frontend, without the slots, classes and numbers by which the table has them.
 */

import { type Hex, lengthOf, type NftSet, type NftTable, type Verdict, valueText } from "@fairlead/netfilter/nft";

/** Endpoints as they stand under one frontend's key in a pool, whatever their slots are. */
interface Pooled {
  /** `endpoints`, `nodeport-local-endpoints`, … */
  readonly pool: string;
  /** `ip daddr . meta l4proto . th dport`, or without the address. */
  readonly key: Hex;
  /** The key as nft prints it. */
  readonly frontend: string;
  /** `10.144.1.5 . 8080` */
  readonly endpoints: Set<string>;
}

const POOL = /^(.*endpoints)-(\d+)$/;

/**
 * The endpoints of each frontend in each pool, by pool and key; those of a class that nothing leads to don't count. A
 * step is an element.
 */
export function* pooledEndpoints(table: NftTable): Generator<void, ReadonlyMap<string, Pooled>, void> {
  const led = yield* sizesLedTo(table);
  const found = new Map<string, Pooled>();
  for (const set of table.sets.values()) {
    const [, pool, size] = POOL.exec(set.name) ?? [];
    if (pool === undefined || size === undefined || set.data === undefined || set.data === "verdict") continue;
    const frontend = frontendIn(set);
    for (const { key: whole, value } of set.elements.values()) {
      yield;
      const key = whole.slice(0, frontend.digits);
      const id = `${pool} ${key}`;
      if (typeof value !== "string" || (frontend.hasSlot && led.get(id)?.has(size) !== true)) continue;
      const known = found.get(id) ?? { pool, key, frontend: valueText(frontend.types, key), endpoints: new Set() };
      known.endpoints.add(valueText(set.data, value));
      found.set(id, known);
    }
  }
  for (const sticky of yield* stickyEndpoints(table)) found.set(`${sticky.pool} ${sticky.key}`, sticky);
  return found;
}

/** What is there for services with affinity has numbers in it, in the order in which they were needed. */
const OF_CLASS =
  /(?:^|-)(?:endpoints-\d+|sticky-(?:gone-)?\d+(?:-\d+)?)$|^(?:local-)?sticky-(?:clients|slots|endpoints)$|^sticky-(?:ips|nodeports)$|^weighted-.*\/sticky$/;

/** Whether a chain or set is there for a class: one that nothing needs may stay, and one may not be there yet. */
export function isOfClass(name: string): boolean {
  return OF_CLASS.test(name);
}

/** A verdict as text, without the size of a class. */
export function verdictMeaning(verdict: Verdict): string {
  if (!("chain" in verdict)) return verdict.kind;
  return `${verdict.kind} ${verdict.chain.replace(/((?:^|-)(?:endpoints|sticky-\d+))-\d+$/, "$1-…")}`;
}

/** The parts of the key before the slot, which is there in maps that are drawn from. */
function frontendIn({ key }: NftSet) {
  const hasSlot = key.at(-1) === "integer";
  const types = hasSlot ? key.slice(0, -1) : key;
  return { hasSlot, types, digits: 2 * lengthOf(types) };
}

/** Which sizes of a pool elements of verdict maps lead to, by pool and key. */
function* sizesLedTo({ sets }: NftTable): Generator<void, ReadonlyMap<string, ReadonlySet<string>>, void> {
  const led = new Map<string, Set<string>>();
  for (const { elements } of sets.values()) {
    for (const { key, value } of elements.values()) {
      yield;
      const to = typeof value === "object" && "chain" in value ? poolOf(value.chain) : undefined;
      if (to === undefined) continue;
      const id = `${to.pool} ${key}`;
      led.set(id, (led.get(id) ?? new Set()).add(to.size));
    }
  }
  return led;
}

/** Digits of a number in a key or a value. */
const NUMBER = 8;
const FRONTENDS = ["sticky-ips", "sticky-nodeports"];
const PREFIXES = ["", "local-"];

/**
 * Where clients with affinity are led, by frontend: what they can draw, and what they can be remembered with, without
 * the numbers by which the table has it. A step is an element.
 */
function* stickyEndpoints(table: NftTable): Generator<void, readonly Pooled[], void> {
  const found: Pooled[] = [];
  const ports = yield* endpointsByNumber(table);
  for (const name of FRONTENDS) {
    const set = table.sets.get(name);
    for (const { key, value } of set?.elements.values() ?? []) {
      yield;
      for (const { pool, byNumber } of ports) {
        const endpoints = byNumber.get(String(value).slice(NUMBER));
        if (set !== undefined && endpoints !== undefined)
          found.push({ pool, key, frontend: valueText(set.key, key), endpoints });
      }
    }
  }
  return found;
}

function* endpointsByNumber({ sets }: NftTable) {
  const pools: { readonly pool: string; readonly byNumber: ReadonlyMap<Hex, Set<string>> }[] = [];
  for (const prefix of PREFIXES) {
    const [members, slots] = [sets.get(`${prefix}sticky-endpoints`), sets.get(`${prefix}sticky-slots`)];
    const texts = new Map<Hex, string>();
    const remembered = new Map<Hex, Set<string>>();
    for (const { key, value } of members?.elements.values() ?? []) {
      yield;
      const text = elementText(members, value);
      texts.set(key.slice(0, 2 * NUMBER), text);
      add(remembered, key.slice(0, NUMBER), text);
    }
    const drawn = new Map<Hex, Set<string>>();
    for (const { key, value } of slots?.elements.values() ?? []) {
      yield;
      add(drawn, key.slice(0, NUMBER), texts.get(String(value).slice(NUMBER)) ?? "no endpoint");
    }
    pools.push(
      { pool: `${prefix}sticky-endpoints`, byNumber: remembered },
      { pool: `${prefix}sticky-slots`, byNumber: drawn },
    );
  }
  return pools;
}

function elementText(set: NftSet | undefined, value: unknown): string {
  const types = set?.data;
  return types === undefined || types === "verdict" || typeof value !== "string" ? "" : valueText(types, value);
}

function add(to: Map<Hex, Set<string>>, key: Hex, value: string): void {
  to.set(key, (to.get(key) ?? new Set()).add(value));
}

/**
 * Services of about as many endpoints share a class, which is in the names of chains and maps: `endpoints-8`,
 * `external-endpoints-8`, `sticky-10800-8`. Which class a service is in depends on what it was before.
 */
const CLASS_CHAIN = /^(?:external-)?(.*?)(?:endpoints|sticky-\d+)-(\d+)$/;

/** The pool that a chain leads to: maps of this name, with the size behind it; undefined: it is no class's. */
function poolOf(chain: string): { readonly pool: string; readonly size: string } | undefined {
  const [, prefix, size] = CLASS_CHAIN.exec(chain) ?? [];
  return prefix === undefined || size === undefined ? undefined : { pool: `${prefix}endpoints`, size };
}
