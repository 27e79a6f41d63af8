import { type Hex, lengthOf, type NftSet, type NftTable } from "@fairlead/netfilter/nft";

/** Whose a key of a set is, by the service's name. */
export type OwnerOf = (key: Hex) => string | undefined;

/**
 * The services of frontends, by what the elements of either table say in their comments; of an address only, the first
 * service that has it.
 */
export function ownersIn(...tables: readonly (NftTable | undefined)[]): OwnerOf {
  const owners = new Map<Hex, string>();
  for (const table of tables) {
    for (const set of table?.sets.values() ?? []) {
      for (const [key, owner] of namedKeys(set)) if (!owners.has(key)) owners.set(key, owner);
    }
  }
  return (key) => owners.get(key);
}

/** Keys of a verdict map with what their comments say, and the addresses in them. */
function* namedKeys({ key: types, data, elements }: NftSet): Generator<readonly [key: Hex, owner: string]> {
  const [first] = types;
  if (data !== "verdict" || first === undefined) return;
  for (const { key, comment } of elements.values()) {
    if (comment === undefined) continue;
    yield [key, comment];
    if (types.length === 3) yield [key.slice(0, 2 * lengthOf([first])), comment];
  }
}
