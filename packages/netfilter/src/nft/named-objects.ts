/** NFT_OBJECT_* of linux/netfilter/nf_tables.h that `nft` has statements for, by nft's names. */
export const OBJECT_TYPES = {
  counter: 1,
  quota: 2,
  "ct helper": 3,
  limit: 4,
  "ct timeout": 7,
  secmark: 8,
  "ct expectation": 9,
  synproxy: 10,
} as const;

/** A kind of object that a table has by name, and that rules apply to packets. */
export type NamedObject = keyof typeof OBJECT_TYPES;

// The keys of a constant are its own.
const NAMES = Object.keys(OBJECT_TYPES) as NamedObject[];

/** @returns undefined for a type that is not known here */
export function objectOf(type: number | undefined): NamedObject | undefined {
  return NAMES.find((name) => OBJECT_TYPES[name] === type);
}

export function isNamedObject(name: string): name is NamedObject {
  return Object.hasOwn(OBJECT_TYPES, name);
}
