/** The addresses of all nodes and of the API server: endpoints at them decide nothing. */
export class NodeAddresses {
  readonly #nodes = new Map<string, readonly string[]>();
  #all: ReadonlySet<string> | undefined;

  /** Returns whether anything changed. */
  set(node: string, addresses: readonly string[]): boolean {
    if (this.#nodes.get(node)?.join() === addresses.join()) return false;
    if (addresses.length === 0) this.#nodes.delete(node);
    else this.#nodes.set(node, addresses);
    this.#all = undefined;
    return true;
  }

  get all(): ReadonlySet<string> {
    this.#all ??= new Set([...this.#nodes.values()].flat());
    return this.#all;
  }
}
