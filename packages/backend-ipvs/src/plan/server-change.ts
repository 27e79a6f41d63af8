/** What takes a virtual server from what it is to what it has to be. */

import { socketText } from "@fairlead/base";
import type { Destination, DestinationKey, ServerCommand, VirtualServer } from "@fairlead/netfilter";
import type { WantedServer } from "./group.ts";

/** What takes one virtual server from what it is to what it has to be. */
interface ServerChange {
  readonly additions: readonly ServerCommand[];
  readonly removals: readonly ServerCommand[];
  /** Destinations, by `destinationText`, that get no new connections and stay until the old ones have ended. */
  readonly draining: ReadonlyMap<string, DestinationKey>;
}

/** As much of a wanted server as its change follows from. */
interface Destinations extends Pick<WantedServer, "server" | "weights"> {
  readonly endpoints: readonly DestinationKey[];
  readonly present?: readonly DestinationKey[];
}

/** A server as it is; a service may have a hundred thousand destinations. */
interface PresentServer extends VirtualServer {
  readonly destinations: Iterable<Destination>;
}

/**
 * A TCP destination that is not wanted any more drains: weight 0, until it has no connection; it goes at once where its
 * endpoint is gone and its connections are to end (`WantedServer.present`). UDP and SCTP know no end of a connection,
 * or not here; theirs go at once (as upstream). Yields after each destination.
 */
export function* serverChange(wanted: Destinations, present: PresentServer): Generator<void, ServerChange> {
  const { server } = wanted;
  const there = new Map<string, Destination>();
  for (const one of present.destinations) {
    there.set(destinationText(one), one);
    yield;
  }
  const additions: ServerCommand[] = sameServer(server, present) ? [] : [{ kind: "edit-server", server }];
  for (const destination of activeDestinations(wanted)) {
    yield;
    const text = destinationText(destination);
    const known = there.get(text);
    there.delete(text);
    if (known?.weight === destination.weight && known.forwarding === destination.forwarding) continue;
    const kind = known === undefined ? "add-destination" : "edit-destination";
    additions.push({ kind, server, destination });
  }
  return { additions, ...(yield* leave(wanted, there)) };
}

type Leaving = Pick<ServerChange, "removals" | "draining">;

function* leave(wanted: Destinations, unwanted: ReadonlyMap<string, Destination>): Generator<void, Leaving> {
  const { server } = wanted;
  const draining = yield* drainingOf(wanted, unwanted);
  const removals: ServerCommand[] = [];
  for (const [text, one] of unwanted) {
    if (!draining.has(text)) removals.push({ kind: "delete-destination", server, destination: one });
    else if (one.weight !== 0) removals.push({ kind: "edit-destination", server, destination: { ...one, weight: 0 } });
    yield;
  }
  return { removals, draining };
}

/** Which of the destinations that are not wanted anymore may keep their connections. */
function* drainingOf(
  { server, present }: Destinations,
  unwanted: ReadonlyMap<string, Destination>,
): Generator<void, ReadonlyMap<string, Destination>> {
  if (server.protocol !== "TCP" || unwanted.size === 0) return new Map();
  if (present === undefined) return unwanted;
  const draining = new Map<string, Destination>();
  for (const endpoint of present) {
    const text = destinationText(endpoint);
    const one = unwanted.get(text);
    if (one !== undefined) draining.set(text, one);
    yield;
  }
  return draining;
}

/** What makes a virtual server that is not there. */
export function* newServer(wanted: WantedServer): Generator<ServerCommand> {
  const { server } = wanted;
  yield { kind: "add-server", server };
  for (const destination of activeDestinations(wanted)) yield { kind: "add-destination", server, destination };
}

/** The state that a server has been brought to, with what drains there. */
export function programmedState(wanted: WantedServer, draining: Iterable<DestinationKey>): PresentServer {
  return { ...wanted.server, destinations: programmedDestinations(wanted, draining) };
}

function* programmedDestinations(
  wanted: WantedServer,
  draining: Iterable<DestinationKey>,
): Generator<Destination, void, void> {
  yield* activeDestinations(wanted);
  for (const one of draining) yield destinationOf(one, 0);
}

/** Those that get connections. */
export function* activeDestinations({
  endpoints,
  weights = [],
}: Pick<Destinations, "endpoints" | "weights">): Generator<Destination, void, void> {
  for (const [at, endpoint] of endpoints.entries()) yield destinationOf(endpoint, weights[at] ?? 1);
}

function destinationOf({ address, port }: DestinationKey, weight: number): Destination {
  return { address, port, weight, forwarding: "masquerade" };
}

export function destinationText({ address, port }: DestinationKey): string {
  return socketText(address, port);
}

function sameServer(a: VirtualServer, b: VirtualServer): boolean {
  return (
    a.scheduler === b.scheduler &&
    a.persistenceSeconds === b.persistenceSeconds &&
    a.flags.join() === b.flags.join() &&
    (a.others ?? []).join(" ") === (b.others ?? []).join(" ")
  );
}
