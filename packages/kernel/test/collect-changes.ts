import type { NodeAddresses } from "../src/index.ts";

/** Collects what a watch gives. */
export function collect(addresses: NodeAddresses, signal: AbortSignal) {
  const seen: string[][] = [];
  const done = (async () => {
    for await (const list of addresses.watch({ signal })) seen.push(list.map(({ address }) => address));
  })();
  return { seen, done };
}
