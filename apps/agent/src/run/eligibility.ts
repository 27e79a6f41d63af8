import type { NodeState } from "@fairlead/core";

/** Whether this node should get traffic from load balancers, as its Node object says. */
export class NodeEligibility {
  readonly #needsNode: boolean;
  #node: NodeState | undefined;

  /** @param needsNode without a Node object the node is not eligible, as upstream; manifests may do without one */
  constructor(needsNode: boolean) {
    this.#needsNode = needsNode;
  }

  set(node: NodeState | undefined): void {
    this.#node = node;
  }

  get eligible(): boolean {
    return this.#node === undefined ? !this.#needsNode : !this.#node.goingAway;
  }
}
