import type { ClusterView, NodeState } from "@fairlead/core";

/** What became of a Node. */
interface NodeNews {
  /** Anything that decides about endpoints, node ports and local traffic. */
  readonly isChanged: boolean;
  /** Its plan is by something else. */
  readonly isOutdated: boolean;
}

/** The Nodes that there are, and the one that is looked from even after it was deleted. */
export class KnownNodes {
  readonly all = new Map<string, NodeState>();
  readonly #isLookedFrom: (name: string) => boolean;
  /** As the node that is looked from was last; undefined: it is there, or never was. */
  #deleted: NodeState | undefined;

  constructor(isLookedFrom: (name: string) => boolean) {
    this.#isLookedFrom = isLookedFrom;
  }

  /** Whether the node that is looked from was deleted. */
  get isDeleted(): boolean {
    return this.#deleted !== undefined;
  }

  /** The Node as it is, or was last; undefined: there is none. */
  of(name: string): NodeState | undefined {
    return this.all.get(name) ?? (this.#isLookedFrom(name) ? this.#deleted : undefined);
  }

  /** A Node came, changed or (undefined) went. */
  take(name: string, node: NodeState | undefined): NodeNews {
    const before = this.all.get(name);
    const planned = this.of(name);
    if (node === undefined) this.all.delete(name);
    else this.all.set(name, node);
    if (this.#isLookedFrom(name)) this.#deleted = node === undefined ? planned : undefined;
    // Heartbeats come every few seconds, and change nothing here.
    const isChanged = !isSame(before, node);
    return { isChanged, isOutdated: isChanged && node !== undefined && !isSame(planned, node) };
  }
}

/** The first by name of those that there are, or that endpoints are on. */
export function someNode(nodes: ReadonlyMap<string, NodeState>, state: ClusterView): string {
  const [first] = [...nodes.keys()].sort();
  if (first !== undefined) return first;
  const slices = [...state.keys()].flatMap((key) => state.slices(key));
  const names = slices.flatMap(({ endpoints }) => endpoints.flatMap(({ nodeName }) => nodeName ?? []));
  return names.sort()[0] ?? "node";
}

/** Whether the same is known of a Node of what decides about endpoints, node ports and local traffic. */
function isSame(one: NodeState | undefined, other: NodeState | undefined): boolean {
  const facts = (node: NodeState | undefined) => node && [node.zone, node.addresses, node.podCIDRs];
  return JSON.stringify(facts(one)) === JSON.stringify(facts(other));
}
