import { canonicalCIDR } from "@fairlead/netfilter";
import type { IPFamily, Protocol } from "../family.ts";
import type { Runner } from "../runner/runner.ts";
import { lines } from "../runner/text.ts";
import { type Direction, directions } from "./parse-flow.ts";

/** An entry of connection tracking, both directions with their addresses and ports. */
export interface Connection {
  readonly original: Direction;
  /** Its source answers, its destination is whom the answer goes to: the client, or the address that masquerades it. */
  readonly reply: Direction;
}

/**
 * The connections of a family and protocol in zone 0 as they are read; of one client where `source` is given.
 *
 * @throws CommandError when the tool is missing, not permitted or fails
 */
export async function* listConnections(
  runner: Runner,
  family: IPFamily,
  protocol: Protocol,
  { source }: { readonly source?: string } = {},
): AsyncGenerator<Connection, void, void> {
  const about = source === undefined ? [] : ["--orig-src", source];
  const argv = ["conntrack", "-L", "-f", family.toLowerCase(), "-p", protocol.toLowerCase(), ...about] as const;
  for await (const line of lines(runner.stream([...argv]))) {
    const [original, reply] = directions(line).map(canonical);
    if (original !== undefined && reply !== undefined) yield { original, reply };
  }
}

function canonical(direction: Direction): Direction {
  const address = (text: string) => canonicalCIDR(text).split("/")[0] ?? text;
  return { ...direction, source: address(direction.source), destination: address(direction.destination) };
}
