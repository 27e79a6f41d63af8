import type { IPFamily, Ownership } from "@fairlead/core";

/** What is remembered of a service. */
export type Remembered = Readonly<Partial<Record<IPFamily, Ownership>>>;

const known = new Map<string, Remembered>();

/** Services that are remembered alike have one object: there are fifteen in all. Undefined: nothing is remembered. */
export function remembered(IPv4: Ownership | undefined, IPv6: Ownership | undefined): Remembered | undefined {
  if (IPv4 === undefined && IPv6 === undefined) return undefined;
  const name = `${IPv4} ${IPv6}`;
  const made = known.get(name) ?? Object.freeze({ ...(IPv4 && { IPv4 }), ...(IPv6 && { IPv6 }) });
  known.set(name, made);
  return made;
}
