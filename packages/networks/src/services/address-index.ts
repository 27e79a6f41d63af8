import { type AddressWords, addressRange, addressWords, familyOf } from "@fairlead/base";
import type { ServiceKey } from "@fairlead/core";
import { SortedPairs } from "./sorted-pairs.ts";

const NO_ADDRESSES: readonly string[] = [];

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
    const before = this.#addresses.get(service) ?? NO_ADDRESSES;
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
