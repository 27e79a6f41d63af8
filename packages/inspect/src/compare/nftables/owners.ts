import { type Hex, lengthOf, type NftSet, type NftTable, type SetElement } from "@fairlead/netfilter/nft";
import { kubeProxyChain, serviceOfChain } from "./kube-proxy.ts";

/** Whose a key of a set is, by the service's name. */
export type OwnerOf = (key: Hex) => string | undefined;

/**
 * The services of frontends, by what the elements of either table say in their comments, or by the chain of kube-proxy
 * that they lead to; of an address only, the first service that has it. A step is an element.
 */
export function* ownersIn(...tables: readonly NftTable[]): Generator<void, OwnerOf, void> {
  const owners = new Map<Hex, string>();
  for (const table of tables) {
    for (const set of table.sets.values()) {
      for (const [key, owner] of namedKeys(set)) {
        if (!owners.has(key)) owners.set(key, owner);
        yield;
      }
    }
  }
  return (key) => owners.get(key);
}

/** Keys of a verdict map with the services that they are of, and the addresses in them. */
function* namedKeys({ key: types, data, elements }: NftSet): Generator<readonly [key: Hex, owner: string]> {
  const [first] = types;
  if (data !== "verdict" || first === undefined) return;
  for (const element of elements.values()) {
    const { key } = element;
    const service = serviceOf(element);
    if (service === undefined) continue;
    yield [key, service];
    if (types.length === 3) yield [key.slice(0, 2 * lengthOf([first])), service];
  }
}

/** `namespace/name:port` */
export function serviceOf(element: SetElement): string | undefined {
  const chain = element.comment === undefined ? kubeProxyChain(element) : undefined;
  return chain === undefined ? element.comment : serviceOfChain(chain);
}
