import { decodeNode, type NodeState } from "@fairlead/core";
import type { ObjectSource, OtherResource } from "@fairlead/watch";

const NODES: OtherResource = { group: "", version: "v1", plural: "nodes", kind: "Node", namespaced: false };

const FORBIDDEN =
  'the user may not list nodes; a ClusterRole with this rule allows it: {apiGroups: [""], resources: [nodes], verbs: [list, watch]}';

/**
 * All Nodes of a source, by their names in their order.
 *
 * @param signal gives it up
 * @throws Error when they may not be listed, or it is given up before they are there
 */
export async function readNodes(source: ObjectSource, signal: AbortSignal): Promise<ReadonlyMap<string, NodeState>> {
  const nodes: NodeState[] = [];
  const done = new AbortController();
  let forbidden = false;
  let synced = false;
  const subscription = {
    resource: NODES,
    decode: (raw: unknown) => {
      const { object } = decodeNode(raw);
      if (object !== undefined) nodes.push(object);
      return object;
    },
    onChange: ({ type }: { readonly type: string }) => {
      if (type !== "synced") return;
      synced = true;
      done.abort();
    },
    onState: (state: string) => {
      if (state !== "forbidden") return;
      forbidden = true;
      done.abort();
    },
  };
  await source.run({ others: [subscription] }, AbortSignal.any([signal, done.signal]));
  if (forbidden) throw new Error(FORBIDDEN);
  if (!synced) throw new Error("given up before all nodes were read");
  return new Map(nodes.map((node) => [node.name, node] as const).sort(([a], [b]) => (a < b ? -1 : 1)));
}
