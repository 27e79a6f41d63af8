import type { Environment, Exploration, Packet, Tracer } from "@fairlead/trace";

/** Sums of chances are added up in another order. */
const TOLERANCE = 1e-12;

/**
 * Where the merged ways of a packet differ from its single ones in anything but the rules on the way: in words, empty
 * where nothing does.
 */
export function mergedDiffers(tracer: Tracer, packet: Packet, environment: Environment): readonly string[] {
  const single = sums(tracer.explore(packet, environment));
  const merged = sums(tracer.explore(packet, environment, { merged: true }));
  return [...new Set([...single.keys(), ...merged.keys()])].flatMap((end) => {
    const [wanted = 0, found = 0] = [single.get(end), merged.get(end)];
    return Math.abs(wanted - found) < TOLERANCE ? [] : [`${end}: ${found} instead of ${wanted}`];
  });
}

function sums({ outcomes, undecided }: Exploration): ReadonlyMap<string, number> {
  const shares = new Map<string, number>();
  const add = (end: unknown, share: number) => {
    const key = JSON.stringify(end);
    shares.set(key, (shares.get(key) ?? 0) + share);
  };
  for (const { probability, visits: _, ...end } of outcomes) add(end, probability);
  for (const { probability, problem } of undecided) add(problem.message, probability);
  return shares;
}
