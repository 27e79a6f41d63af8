/** The addresses of the other Nodes, for modes that must not take one of them for the node's own. */

import { decodeNode } from "@fairlead/core";
import { NODES } from "@fairlead/networks";
import type { ObjectKey, OtherSubscription } from "@fairlead/watch";

export interface OtherNodesOptions {
  readonly nodeName: string;
  /** The addresses of all Nodes but this one, canonical, whenever they change. */
  readonly onAddresses: (addresses: readonly string[]) => void;
  /** Whether they can be read is known; called again and again. */
  readonly onKnown: () => void;
}

/** What follows the other Nodes alongside `others`: a source is asked for no resource twice. */
export function withOtherNodes(
  others: readonly OtherSubscription[],
  options: OtherNodesOptions,
): readonly OtherSubscription[] {
  const own = otherNodes(options);
  const known = others.find(({ resource }) => resource.group === NODES.group && resource.plural === NODES.plural);
  return known === undefined ? [...others, own] : others.map((one) => (one === known ? both(one, own) : one));
}

function otherNodes({ nodeName, onAddresses, onKnown }: OtherNodesOptions): OtherSubscription {
  const byNode = new Map<ObjectKey, readonly string[]>();
  let synced = false;
  let changed = false;
  let before = "";
  const report = () => {
    changed = false;
    const addresses = [...new Set([...byNode.values()].flat())].sort();
    if (addresses.join() === before) return;
    before = addresses.join();
    onAddresses(addresses);
  };
  return {
    resource: NODES,
    decode: (raw) => raw,
    onChange(change) {
      if (change.type === "upsert") {
        const { name, object } = decodeNode(change.object);
        if (name === nodeName) return;
        const addresses = object?.addresses ?? [];
        if (byNode.get(change.key)?.join() !== addresses.join()) changed = true;
        byNode.set(change.key, addresses);
      } else if (change.type === "delete") changed = byNode.delete(change.key) || changed;
      else synced = true;
      if (!synced) return;
      // A Node's status is written all the time, and there are thousands.
      if (changed) report();
      onKnown();
    },
    onState(state) {
      // Where they cannot be read there is something to serve without them.
      if (state !== "listed") onKnown();
    },
  };
}

/** Both keep the objects as they come. */
function both(one: OtherSubscription, other: OtherSubscription): OtherSubscription {
  return {
    ...one,
    onChange(change) {
      one.onChange(change);
      other.onChange(change);
    },
    onState(state) {
      one.onState(state);
      other.onState(state);
    },
  };
}
