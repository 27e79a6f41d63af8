/** JSON manifests without what cannot have to do with a target, before they are read. */

import { isObject, parseAddressLeniently } from "@fairlead/base";
import { ClusterState, decodeService, type Service } from "@fairlead/core";
import type { Target } from "./find.ts";
import { afterKey, chosenText, type JsonItems, jsonItems } from "./json-items.ts";
import { type Claim, claimsOf, claimsOn, claimText, relatedServices } from "./related.ts";

/**
 * Leaves out of manifests what cannot have to do with a target, before it is read: of tens of thousands of objects a
 * few matter. The own Node stays, and so do the services that `relatedServices` names and their EndpointSlices.
 *
 * @param contents of files. Where one of them is no JSON array or list of objects, all of them are given back whole.
 */
export function leaveOutOthers(contents: readonly Uint8Array[], target: Target): readonly Uint8Array[] {
  // It may be a pod's, of which only EndpointSlices know the service.
  if (target.kind === "host") return contents;
  const texts = contents.flatMap((content) => ObjectTexts.of(content) ?? []);
  if (texts.length < contents.length) return contents;
  const state = new ClusterState();
  const traits = new Map(traitsOf(state, target));
  while (traits.size <= MOST_TRAITS) {
    const known = traits.size;
    const chosen = texts.map((text) => text.choose(text.having(traits.values())));
    const services = chosen.map(servicesIn);
    // What cannot be read is read whole, to say where in the file that is.
    if (services.includes(undefined)) return contents;
    for (const service of services.flatMap((some) => some ?? [])) state.upsertService(service);
    for (const [key, trait] of traitsOf(state, target)) traits.set(key, trait);
    if (traits.size === known) return chosen;
  }
  return contents;
}

/** Each costs a search of everything. */
const MOST_TRAITS = 24;

/** Something that an object may have, as its text shows it. */
type Trait = { readonly kind: "text"; readonly text: string } | Claim;

function traitsOf(state: ClusterState, target: Target): ReadonlyMap<string, Trait> {
  const asked: readonly Trait[] = target.kind === "service" ? [text(nameOf(target.service))] : claimsOn(target);
  const related = [...relatedServices(state, target)].flatMap((key) => state.service(key) ?? []);
  const all = [text("Node"), ...asked, ...related.flatMap(traitsOfService)];
  return new Map(all.map((trait) => [traitKey(trait), trait]));
}

/** By its name, which its slices have too, and by what others could have as well. */
function traitsOfService(service: Service): readonly Trait[] {
  return [text(service.name), ...claimsOf(service)];
}

function text(of: string): Trait {
  return { kind: "text", text: of };
}

function nameOf(key: string): string {
  return key.slice(key.indexOf("/") + 1);
}

function traitKey(trait: Trait): string {
  return trait.kind === "text" ? JSON.stringify(trait.text) : claimText(trait);
}

const NODE_PORT = '"nodePort"';

/** The objects of one JSON text, found by what they hold before they are read. */
class ObjectTexts {
  /** Places of what was looked for before. */
  readonly #found = new Map<string, readonly number[]>();
  readonly #bytes: Buffer;
  readonly #items: JsonItems;
  /** Where something is written in another way than it is looked for. */
  readonly #unusual: readonly number[];
  /** Where addresses stand that are not written as they are looked for, by how they would be. */
  readonly #oddAddresses: ReadonlyMap<string, readonly number[]>;

  /** @returns undefined: the text is no array or list of objects */
  static of(content: Uint8Array): ObjectTexts | undefined {
    const bytes = Buffer.from(content.buffer, content.byteOffset, content.byteLength);
    const unusual: number[] = [];
    const odd: number[] = [];
    const items = jsonItems(bytes, {
      unusual: (at) => unusual.push(at),
      string: (from, to) => {
        if (isOddAddress(bytes, from + 1, to)) odd.push(from);
      },
    });
    return items && new ObjectTexts(bytes, items, unusual, addressesAt(bytes, odd));
  }

  private constructor(
    bytes: Buffer,
    items: JsonItems,
    unusual: readonly number[],
    oddAddresses: ReadonlyMap<string, readonly number[]>,
  ) {
    this.#bytes = bytes;
    this.#items = items;
    this.#unusual = unusual;
    this.#oddAddresses = oddAddresses;
  }

  /**
   * The objects, by their place, that may have one of these; more than do. Ascending: of two of one name the last one
   * counts.
   */
  having(traits: Iterable<Trait>): readonly number[] {
    const places = [...this.#unusual, ...[...traits].flatMap((trait) => this.#knownPlacesOf(trait))];
    return [...new Set(places.flatMap((at) => this.#itemAt(at)))].sort((a, b) => a - b);
  }

  /** The text with these objects only. */
  choose(items: Iterable<number>): Uint8Array {
    return chosenText(this.#bytes, this.#items, items);
  }

  #knownPlacesOf(trait: Trait): readonly number[] {
    const key = traitKey(trait);
    const places = this.#found.get(key) ?? this.#placesOf(trait);
    this.#found.set(key, places);
    return places;
  }

  #placesOf(trait: Trait): readonly number[] {
    if (trait.kind === "nodePort") return this.#allOf(NODE_PORT).filter((at) => this.#numberAfter(at) === trait.port);
    if (trait.kind === "text") return this.#allOf(JSON.stringify(trait.text));
    return [...this.#allOf(`"${trait.address}"`), ...(this.#oddAddresses.get(trait.address) ?? [])];
  }

  #allOf(text: string): number[] {
    const found: number[] = [];
    for (let at = this.#bytes.indexOf(text); at >= 0; at = this.#bytes.indexOf(text, at + 1)) found.push(at);
    return found;
  }

  /** The value of the property whose key stands there. */
  #numberAfter(key: number): number {
    const value = afterKey(this.#bytes, key);
    return value === undefined
      ? Number.NaN
      : Number.parseInt(this.#bytes.toString("latin1", value, value + DIGITS), 10);
  }

  /** None for what stands around the objects. */
  #itemAt(at: number): readonly number[] {
    const { starts, ends } = this.#items;
    const item = lastUpTo(starts, at);
    return item >= 0 && at < (ends[item] ?? 0) ? [item] : [];
  }
}

/** Of a port. */
const DIGITS = 5;

function addressesAt(bytes: Buffer, places: readonly number[]): ReadonlyMap<string, readonly number[]> {
  const found = new Map<string, number[]>();
  for (const at of places) {
    const address = parseAddressLeniently(bytes.toString("latin1", at + 1, bytes.indexOf('"', at + 1)))?.text;
    if (address === undefined) continue;
    const known = found.get(address);
    if (known === undefined) found.set(address, [at]);
    else known.push(at);
  }
  return found;
}

/** Place of the last number of an ascending list that is not above; -1: all are. */
function lastUpTo(ascending: readonly number[], limit: number): number {
  let [low, high] = [0, ascending.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((ascending[middle] ?? 0) <= limit) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

const [COLON, DOT, ZERO, NINE, A, F, CASE] = [0x3a, 0x2e, 0x30, 0x39, 0x61, 0x66, 0x20] as const;

/**
 * Whether a text may be an address that is not written as `parseAddress` of core writes it: with leading zeros, an IPv6
 * address that is not compressed, or one that stands for an IPv4 address. Large lists have hundreds of thousands that
 * are.
 */
function isOddAddress(bytes: Buffer, from: number, to: number): boolean {
  let [isIPv6, ledByZero] = [false, false];
  for (let at = from; at < to; at += 1) {
    const byte = bytes[at] ?? 0;
    if (byte === COLON) isIPv6 = true;
    else if (byte === ZERO) ledByZero ||= isFirst(bytes, at, from) && isDigit(bytes[at + 1] ?? 0);
    else if (byte !== DOT && !isDigit(byte) && !isHexLetter(byte)) return false;
  }
  return isIPv6 ? !PLAIN_IPV6.test(bytes.toString("latin1", from, to)) : ledByZero;
}

/** Eight groups, or fewer and a gap for two at least; none begins with a zero. */
const PLAIN_IPV6 = plainIPv6("[1-9a-f][0-9a-f]{0,3}");

function plainIPv6(group: string): RegExp {
  const groups = `${group}(?::${group})*`;
  return new RegExp(`^(?:${group}(?::${group}){7}|(?=(?:[^:]*:){2,6}[^:]*$)${groups}::(?:${groups})?)$`);
}

function isFirst(bytes: Buffer, at: number, from: number): boolean {
  return at === from || bytes[at - 1] === DOT;
}

function isDigit(byte: number): boolean {
  return byte >= ZERO && byte <= NINE;
}

function isHexLetter(byte: number): boolean {
  const small = byte | CASE;
  return small >= A && small <= F;
}

/** The services of a JSON array or list of objects; undefined: it cannot be read. */
function servicesIn(content: Uint8Array): readonly Service[] | undefined {
  return objectsIn(content)?.flatMap((raw) => {
    // The kind of a list's objects may stand in the list only.
    if (!isObject(raw) || (raw["kind"] ?? SERVICE) !== SERVICE) return [];
    const metadata = isObject(raw["metadata"]) ? raw["metadata"] : {};
    return decodeService({ ...raw, metadata: { namespace: "default", ...metadata } }).object ?? [];
  });
}

const SERVICE = "Service";

function objectsIn(content: Uint8Array): readonly unknown[] | undefined {
  try {
    const document: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(content));
    const objects = isObject(document) ? document["items"] : document;
    return Array.isArray(objects) ? objects : undefined;
  } catch {
    return undefined;
  }
}
