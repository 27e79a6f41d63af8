import { socketText } from "@fairlead/base";
import type {
  Destination,
  DestinationKey,
  ServerCommand,
  VirtualServer,
  VirtualServerState,
} from "@fairlead/netfilter";
import type { WantedServer } from "./servers.ts";

/** What takes one virtual server from what it is to what it has to be. */
export interface ServerChange {
  readonly additions: readonly ServerCommand[];
  readonly removals: readonly ServerCommand[];
  /** Destinations that get no new connections any more and stay until the old ones have ended. */
  readonly draining: readonly DestinationKey[];
}

/**
 * A TCP destination that is not wanted any more drains: weight 0, until nobody is connected. UDP and SCTP know no end
 * of a connection, or not here; theirs go at once (as upstream).
 */
export function serverChange(wanted: WantedServer, present: VirtualServerState): ServerChange {
  const { server } = wanted;
  const there = new Map(present.destinations.map((one) => [destinationText(one), one]));
  const additions: ServerCommand[] = sameServer(server, present) ? [] : [{ kind: "edit-server", server }];
  for (const endpoint of wanted.endpoints) {
    const text = socketText(endpoint.address, endpoint.port);
    const known = there.get(text);
    there.delete(text);
    if (known?.weight === 1 && known.forwarding === "masquerade") continue;
    const kind = known === undefined ? "add-destination" : "edit-destination";
    additions.push({ kind, server, destination: activeDestination(endpoint) });
  }
  return { additions, ...leave(server, [...there.values()]) };
}

function leave(server: VirtualServer, gone: readonly Destination[]): Omit<ServerChange, "additions"> {
  if (server.protocol !== "TCP") {
    return {
      removals: gone.map((destination) => ({ kind: "delete-destination", server, destination })),
      draining: [],
    };
  }
  return {
    removals: gone
      .filter(({ weight }) => weight !== 0)
      .map((one) => ({ kind: "edit-destination", server, destination: { ...one, weight: 0 } })),
    draining: gone,
  };
}

/** What makes a virtual server that is not there. */
export function* newServer({ server, endpoints }: WantedServer): Generator<ServerCommand> {
  yield { kind: "add-server", server };
  for (const endpoint of endpoints) {
    yield { kind: "add-destination", server, destination: activeDestination(endpoint) };
  }
}

/** The state that a server has been brought to, with what drains there. */
export function programmedState(
  { server, endpoints }: WantedServer,
  draining: Iterable<DestinationKey>,
): VirtualServerState {
  const drained = Array.from(draining, (one): Destination => ({ ...activeDestination(one), weight: 0 }));
  return { ...server, destinations: [...endpoints.map(activeDestination), ...drained] };
}

function activeDestination({ address, port }: DestinationKey): Destination {
  return { address, port, weight: 1, forwarding: "masquerade" };
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
