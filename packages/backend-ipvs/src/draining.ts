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

  looked(): void {
    this.#fresh.clear();
  }

  of(key: string): Iterable<DestinationKey> {
    return this.#servers.get(key)?.destinations.values() ?? [];
  }

  /** All that drains at a server now. */
  set(server: VirtualServerKey, destinations: readonly DestinationKey[]): void {
    const { family, protocol, address, port } = server;
    const key = renderServerKey(server);
    if (destinations.length === 0) this.forget(key);
    else {
      const known = this.#servers.get(key)?.destinations;
      if (destinations.some((one) => known?.has(destinationText(one)) !== true)) this.#fresh.add(key);
      const byText = new Map(destinations.map((one) => [destinationText(one), one]));
      this.#servers.set(key, { server: { family, protocol, address, port }, destinations: byText });
    }
  }

  forget(key: string): void {
    this.#servers.delete(key);
    this.#fresh.delete(key);
  }

  /** The destinations that still drain at a server, and of these, those that nobody is connected to any more. */
  finished(server: ServerConnections): readonly DestinationKey[] {
    const draining = this.#servers.get(renderServerKey(server))?.destinations;
    return server.destinations.filter(
      (one) => draining?.has(destinationText(one)) === true && one.weight === 0 && one.active + one.inactive === 0,
    );
  }

  /** The destinations are gone. */
  remove(server: VirtualServerKey, gone: readonly DestinationKey[]): void {
    const key = renderServerKey(server);
    const texts = new Set(gone.map(destinationText));
    this.set(
      server,
      Array.from(this.of(key)).filter((one) => !texts.has(destinationText(one))),
    );
  }
}
