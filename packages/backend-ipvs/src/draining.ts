import {
  type DestinationKey,
  renderServerKey,
  type ServerConnections,
  type VirtualServerKey,
} from "@fairlead/netfilter";
import { destinationText } from "./plan/server-change.ts";

interface DrainingServer {
  readonly server: VirtualServerKey;
  readonly destinations: ReadonlyMap<string, DestinationKey>;
}

/**
 * The destinations of weight 0 that wait for their connections to end. The kernel has them as well; this is the index.
 */
export class Draining {
  readonly #servers = new Map<string, DrainingServer>();
  /** Servers at which something has begun to drain and was not looked at yet. */
  readonly #fresh = new Set<string>();

  get size(): number {
    return this.#servers.size;
  }

  servers(): readonly VirtualServerKey[] {
    return [...this.#servers.values()].map(({ server }) => server);
  }

  /** Those of them at which something has begun to drain since `looked`. */
  fresh(): readonly VirtualServerKey[] {
    return [...this.#fresh].flatMap((key) => this.#servers.get(key)?.server ?? []);
  }

  checked(): void {
    this.#fresh.clear();
  }

  of(key: string): Iterable<DestinationKey> {
    return this.#servers.get(key)?.destinations.values() ?? [];
  }

  /** All that drains at a server now, by `destinationText`. */
  set(server: VirtualServerKey, destinations: ReadonlyMap<string, DestinationKey>): void {
    const { family, protocol, address, port } = server;
    const key = renderServerKey(server);
    if (destinations.size === 0) {
      this.forget(key);
      return;
    }
    const known = this.#servers.get(key)?.destinations;
    if (hasNew(destinations, known)) this.#fresh.add(key);
    this.#servers.set(key, { server: { family, protocol, address, port }, destinations });
  }

  forget(key: string): void {
    this.#servers.delete(key);
    this.#fresh.delete(key);
  }

  /**
   * The destinations that drain at a server and have no connection. Yields after each
   * destination.
   */
  *finished(server: ServerConnections): Generator<void, readonly DestinationKey[]> {
    const draining = this.#servers.get(renderServerKey(server))?.destinations;
    const finished: DestinationKey[] = [];
    for (const one of server.destinations) {
      const isUnused = one.weight === 0 && one.active + one.inactive === 0;
      if (isUnused && draining?.has(destinationText(one)) === true) finished.push(one);
      yield;
    }
    return finished;
  }

  /** The destinations are gone. Yields after each. */
  *remove(server: VirtualServerKey, gone: Iterable<DestinationKey>): Generator<void, void, void> {
    const left = new Map<string, DestinationKey>();
    for (const one of this.of(renderServerKey(server))) {
      left.set(destinationText(one), one);
      yield;
    }
    for (const one of gone) {
      left.delete(destinationText(one));
      yield;
    }
    this.set(server, left);
  }
}

function hasNew(now: ReadonlyMap<string, unknown>, known: ReadonlyMap<string, unknown> | undefined): boolean {
  for (const text of now.keys()) if (known?.has(text) !== true) return true;
  return false;
}
