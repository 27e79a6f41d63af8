/** Nodes that are asked at the same time: each is a process or two here, and work for the API server. */
const AT_ONCE = 4;

/**
 * Does the work for each node, for a few at once.
 *
 * @returns what came of them, in the order of the nodes
 */
export async function eachNode<T>(nodes: readonly string[], work: (node: string) => Promise<T>): Promise<readonly T[]> {
  const results = new Map<string, T>();
  const queue = nodes.values();
  const worker = async () => {
    for (const node of queue) results.set(node, await work(node));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return nodes.flatMap((node) => results.get(node) ?? []);
}
