import { socketText } from "@fairlead/base";
import type { Connection } from "@fairlead/kernel";

/** How many of the places that known connections lead to are named. */
const NAMED = 5;

/** The connections that conntrack knows from there to there, one line for each place that they lead to. */
export function knownText(connections: readonly Connection[]): string {
  const places = new Map<string, Connection[]>();
  for (const connection of connections) {
    const { source, sourcePort } = connection.reply;
    const place = socketText(source, sourcePort);
    const others = places.get(place);
    if (others === undefined) places.set(place, [connection]);
    else others.push(connection);
  }
  const sorted = [...places].sort(([, one], [, other]) => other.length - one.length);
  const lines = sorted
    .slice(0, NAMED)
    .map(([place, there]) => `known: ${countText(there)} → ${place}${offloadedText(there)}\n`);
  const left = sorted.slice(NAMED).flatMap(([, there]) => there);
  const more = sorted.length - NAMED;
  return `${lines.join("")}${more > 0 ? `known: ${left.length} more, to ${more} other places\n` : ""}`;
}

function countText([first, ...others]: readonly Connection[]): string {
  return others.length === 0 ? `port ${first?.original.sourcePort}` : `${others.length + 1} connections`;
}

/** A trace shows which rules there are; the packets of these connections do not get to them. */
function offloadedText(connections: readonly Connection[]): string {
  const count = connections.filter(({ offloaded }) => offloaded).length;
  if (count === 0) return "";
  const which = count === connections.length ? "offloaded" : `${count} of them offloaded`;
  return `, ${which}: packets of a connection on the fast path meet no rules`;
}
