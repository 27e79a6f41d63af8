import { API_SERVER, type NeutralAddresses } from "@fairlead/endpoint-filter";

/** Addresses of one node: its credential writes them, and each may cost rules. */
const MOST_ADDRESSES = 16;

/** The addresses of all nodes and of the API server: endpoints at them decide nothing. */
export class NodeAddresses {
  readonly #nodes = new Map<string, readonly string[]>();
  #all: NeutralAddresses | undefined;

  /**
   * @param node its name, or `API_SERVER`
   * @returns whether anything changed
   */
  set(node: string, given: readonly string[]): boolean {
    const addresses = given.slice(0, MOST_ADDRESSES);
    if (this.#nodes.get(node)?.join() === addresses.join()) return false;
    if (addresses.length === 0) this.#nodes.delete(node);
    else this.#nodes.set(node, addresses);
    this.#all = undefined;
    return true;
  }

  /** The same one while nothing changes. */
  get all(): NeutralAddresses {
    this.#all ??= byAddress(this.#nodes);
    return this.#all;
  }
}

/** A Node's credential writes its addresses, so they count for that node only; the API server writes its own. */
function byAddress(nodes: ReadonlyMap<string, readonly string[]>): NeutralAddresses {
  const found = new Map<string, Set<string>>();
  for (const [node, addresses] of nodes) {
    for (const address of addresses) found.set(address, (found.get(address) ?? new Set()).add(node));
  }
  return new Map(Array.from(found, ([address, names]) => [address, names.has(API_SERVER) ? "any" : names]));
}
