import type { Environment, Outcome, Packet, TraceError } from "@fairlead/trace";
import type { View } from "./view.ts";

/** What becomes of a packet: all its ways, or why they are not known. */
export type Followed =
  | { readonly outcomes: readonly Outcome[] }
  /** @property error absent where no rule is the reason */
  | { readonly problem: string; readonly error?: TraceError };

/** Follows a packet through a kernel. Rules that cannot be decided are taken both ways. */
export function follow({ tracer, environment }: View, packet: Packet): Followed {
  try {
    const { outcomes, undecided } = tracer.explore(asSent(packet, environment), environment, { merged: true });
    const [first] = undecided;
    return first === undefined ? { outcomes } : { problem: first.problem.message, error: first.problem };
  } catch (error) {
    if (error instanceof RangeError) return { problem: error.message };
    throw error;
  }
}

function asSent(packet: Packet, environment: Environment): Packet {
  const source =
    packet.inInterface === undefined ? ownSource(packet.source, packet.destination, environment) : undefined;
  return source === undefined ? packet : { ...packet, source };
}

/** What the node sends to an address that one of its own interfaces has, it sends from there. */
export function ownSource(source: string, to: string, { localAddresses = [] }: Environment): string {
  for (const own of localAddresses) if (own === to) return to;
  return source;
}
