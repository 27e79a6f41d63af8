import type { Conntrack, ConntrackFlow } from "../../src/index.ts";

export function flowKey(flow: ConntrackFlow): string {
  const { family, protocol, originalDestination, originalPort, replySource, replyPort } = flow;
  return [family, protocol, originalDestination, originalPort, replySource, replyPort].join(" ");
}

export type Kind = Pick<ConntrackFlow, "family" | "protocol">;

const allKinds: readonly Kind[] = (["IPv4", "IPv6"] as const).flatMap((family) =>
  (["TCP", "UDP", "SCTP"] as const).map((protocol) => ({ family, protocol })),
);

/** Sweeps families and protocols of entries that look like one of the flows; gives the keys of all it has seen. */
export async function sweepAll(
  conntrack: Conntrack,
  doomed: readonly ConntrackFlow[],
  kinds: readonly Kind[] = allKinds,
): Promise<readonly string[]> {
  const keys = new Set(doomed.map(flowKey));
  const seen: string[] = [];
  for (const { family, protocol } of kinds) {
    await conntrack.sweep(family, protocol, (flows) => {
      const keyed = flows.map((flow) => ({ flow, key: flowKey(flow) }));
      for (const { key } of keyed) seen.push(key);
      return keyed.filter(({ key }) => keys.has(key)).map(({ flow }) => flow);
    });
  }
  return seen;
}
