import type { PlanEndpoint } from "@fairlead/core";

/**
 * Sizes of tables: primes, so that every step between 1 and the size before it reaches all slots. Few and far apart,
 * since another size sends nearly all clients elsewhere.
 */
const SIZES = [1_021, 8_191, 65_521] as const;

/** Slots that an endpoint should have at least: its share is one more or less, so within 2 % of even. */
const SLOTS_EACH = 50;

/** As many slots as a table of so many endpoints has; the largest size is for all that are more. */
export function maglevSize(endpoints: number): number {
  return SIZES.find((size) => size >= SLOTS_EACH * endpoints) ?? SIZES[2];
}

/**
 * Maglev's look-up table (Eisenbud and others, NSDI 2016, section 3.4): endpoints take turns, and each takes the first
 * slot of a sequence of its own that is still free. The same endpoints give the same table on every node; one that
 * comes or goes moves few slots of the others.
 *
 * @param endpoints in one order everywhere, at least one
 */
export function maglevTable(endpoints: readonly PlanEndpoint[], size: number): readonly PlanEndpoint[] {
  const sequences = endpoints.map((endpoint) => sequenceOf(`${endpoint.address} ${endpoint.port}`, size));
  const slots: (PlanEndpoint | undefined)[] = new Array(size).fill(undefined);
  for (let filled = 0; filled < size; ) {
    for (const [index, sequence] of sequences.entries()) {
      if (filled === size) break;
      while (slots[sequence.next] !== undefined) sequence.next = (sequence.next + sequence.step) % size;
      slots[sequence.next] = endpoints[index];
      filled++;
    }
  }
  return slots.filter((endpoint) => endpoint !== undefined);
}

interface Sequence {
  next: number;
  readonly step: number;
}

function sequenceOf(name: string, size: number): Sequence {
  return { next: hash(name, 1) % size, step: (hash(name, 2) % (size - 1)) + 1 };
}

/** FNV-1a with MurmurHash3's finalizer, 32 bits: names that differ in one digit have nothing in common. */
function hash(text: string, seed: number): number {
  let bits = 0x811c9dc5 ^ seed;
  for (let at = 0; at < text.length; at++) bits = Math.imul(bits ^ text.charCodeAt(at), 0x01000193);
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
