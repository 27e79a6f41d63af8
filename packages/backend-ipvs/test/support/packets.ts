import { ipvsEnvironment } from "@fairlead/testkit";
import { traceSlots } from "@fairlead/testkit/histories";
import type { Environment, Outcome } from "@fairlead/trace";
import { DEVICE } from "../../src/index.ts";
import type { FakeNode } from "./fake-node.ts";

/** The packet goes its way as if there were no proxy. */
const UNSERVED = "unserved";

/** Nothing answers: the virtual server is empty, or a rule refuses. */
const REFUSED = "refused";

export type Ends = ReadonlyMap<string, ReadonlySet<string>>;

/** Where packets to every frontend that a slot can have may end, by a name for the packet. */
export function whereabouts(node: FakeNode, slots: readonly number[]): Ends {
  const traced = [...traceSlots(node.rules.IPv4.ruleSet(), slots, environmentOf(node))];
  return new Map(traced.map(([packet, outcomes]) => [packet, new Set(outcomes.map(endOf))]));
}

function environmentOf({ servers, sets, links }: FakeNode): Environment {
  const addresses = links.device(DEVICE) ?? [];
  return ipvsEnvironment({ servers: servers.servers(), sets: sets.sets(), addresses });
}

function endOf({ verdict, destination, masqueraded, translated }: Outcome): string {
  if (verdict !== "accept") return REFUSED;
  if (!translated) return UNSERVED;
  return `${destination.address}:${destination.port}${masqueraded ? " as the node" : ""}`;
}

/**
 * The packets that may end where they should neither before nor after: what both serve has to be served between them,
 * by somebody of whom one of them knows. A server can't be changed in one step, so its destinations may be of both.
 */
export function wrongEnds(now: Ends, before: Ends, after: Ends): string[] {
  return [...now].flatMap(([packet, ends]) => {
    const old = before.get(packet) ?? new Set();
    const wanted = after.get(packet) ?? new Set();
    const known = [...old, ...wanted];
    const refusals = isServed(old) && isServed(wanted) ? [] : [UNSERVED, REFUSED];
    // To be masqueraded is to be served, if without the client's address; not to be where it was asked for is not.
    const right = new Set([...known, ...known.map((end) => `${end} as the node`), ...refusals]);
    const wrong = [...ends].filter((end) => !right.has(end));
    if (wrong.length === 0) return [];
    return [`${packet}: ${wrong.join(", ")}; before: ${[...old].join(", ")}; wanted: ${[...wanted].join(", ")}`];
  });
}

function isServed(ends: ReadonlySet<string>): boolean {
  return ends.size > 0 && !ends.has(UNSERVED) && !ends.has(REFUSED);
}
