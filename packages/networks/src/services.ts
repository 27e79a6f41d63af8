/** Services by the addresses of their endpoints. */
import { type AddressWords, addressRange, addressWords, familyOf } from "@fairlead/base";
import type { ServiceKey } from "@fairlead/core";

/** What the decisions ask of the services that there are. */
export interface ServicesView {
  /** All of them. */
  keys(): Iterable<ServiceKey>;
  /** Those with an endpoint's address in the CIDR. */
  within(cidr: string): ReadonlySet<ServiceKey>;
  /** Those of a namespace. */
  inNamespace(namespace: string): Iterable<ServiceKey>;
}

/**
 * Which services have an endpoint in a CIDR, without asking all of them: the cost of a look follows what lies in the
 * CIDR.
 */
export class AddressIndex {
  readonly #addresses = new Map<ServiceKey, readonly string[]>();
  readonly #pairs = { IPv4: new SortedPairs<number>(), IPv6: new SortedPairs<bigint>() };

  /**
   * Notes the addresses of a service's endpoints, in place of earlier ones.
   *
   * @param addresses of all its endpoints, canonical; none: the service is forgotten
   */
  set(service: ServiceKey, addresses: Iterable<string>): void {
    const before = this.#addresses.get(service) ?? [];
    const after = [...new Set(addresses)];
    const kept = new Set(after);
    const known = new Set(before);
    for (const address of before) if (!kept.has(address)) this.#change("delete", address, service);
    for (const address of after) if (!known.has(address)) this.#change("add", address, service);
    if (after.length === 0) this.#addresses.delete(service);
    else this.#addresses.set(service, after);
  }

  /**
   * Services with an endpoint in a CIDR.
   *
   * @param cidr canonical
   */
  within(cidr: string): ReadonlySet<ServiceKey> {
    const { words, masks } = addressRange(cidr);
    const end = words.map((word, at) => (word | ~(masks[at] ?? 0)) >>> 0);
    const found = new Set<ServiceKey>();
    const take = (service: ServiceKey) => found.add(service);
    if (familyOf(cidr) === "IPv4") this.#pairs.IPv4.between(small(words), small(end), take);
    else this.#pairs.IPv6.between(large(words), large(end), take);
    return found;
  }

  #change(what: "add" | "delete", address: string, service: ServiceKey): void {
    const words = addressWords(address);
    if (words.length === 1) this.#pairs.IPv4[what](small(words), service);
    else this.#pairs.IPv6[what](large(words), service);
  }
}

function small([word = 0]: AddressWords): number {
  return word;
}

function large(words: AddressWords): bigint {
  return words.reduce((value, word) => (value << 32n) | BigInt(word), 0n);
}

/** Pairs in one block; twice as many split it. */
const BLOCK = 256;

interface Block<Key> {
  readonly keys: Key[];
  readonly services: ServiceKey[];
}

/** Pairs of an address and a service, in the order of addresses: in blocks, so that a change moves few of them. */
class SortedPairs<Key extends number | bigint> {
  readonly #blocks: Block<Key>[] = [{ keys: [], services: [] }];

  add(key: Key, service: ServiceKey): void {
    const at = this.#blockOf(key);
    const block = this.#blocks[at];
    if (block === undefined) return;
    const place = firstNotBelow(block.keys, key);
    block.keys.splice(place, 0, key);
    block.services.splice(place, 0, service);
    if (block.keys.length < 2 * BLOCK) return;
    const upper = { keys: block.keys.splice(BLOCK), services: block.services.splice(BLOCK) };
    this.#blocks.splice(at + 1, 0, upper);
  }

  /** Removes one such pair; nothing happens without it. */
  delete(key: Key, service: ServiceKey): void {
    for (let at = this.#blockOf(key); at < this.#blocks.length; at++) {
      const { keys, services } = this.#blocks[at] ?? EMPTY;
      let place = firstNotBelow(keys, key);
      while (keys[place] === key && services[place] !== service) place++;
      if (keys[place] === key) {
        keys.splice(place, 1);
        services.splice(place, 1);
        if (keys.length === 0 && this.#blocks.length > 1) this.#blocks.splice(at, 1);
        return;
      }
      // Pairs with this key may go on in the next block.
      if (place < keys.length) return;
    }
  }

  /** Calls `take` for each pair from `first` to `last`, both included. */
  between(first: Key, last: Key, take: (service: ServiceKey) => void): void {
    for (let at = this.#blockOf(first); at < this.#blocks.length; at++) {
      const { keys, services } = this.#blocks[at] ?? EMPTY;
      for (let place = firstNotBelow(keys, first); place < keys.length; place++) {
        const key = keys[place];
        const service = services[place];
        if (key === undefined || service === undefined || key > last) return;
        take(service);
      }
    }
  }

  /** The first block that may hold the key: the last one that begins below it. */
  #blockOf(key: Key): number {
    let low = 0;
    let high = this.#blocks.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const first = this.#blocks[middle]?.keys[0];
      if (first !== undefined && first < key) low = middle + 1;
      else high = middle;
    }
    return Math.max(0, low - 1);
  }
}

const EMPTY: Block<never> = { keys: [], services: [] };

function firstNotBelow<Key extends number | bigint>(keys: readonly Key[], limit: Key): number {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const key = keys[middle];
    if (key !== undefined && key < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}
