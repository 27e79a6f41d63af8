import { inSlices } from "@fairlead/base";
import type { DestinationKey, ServerCommand, VirtualServerKey } from "@fairlead/netfilter";
import type { Draining } from "./draining.ts";
import type { ResolvedOptions } from "./options.ts";
import type { IpvsPort } from "./port.ts";

/** Milliseconds from one look at all that drains to the next (upstream: rsCheckDeleteInterval). */
const PERIOD = 60_000;

/** What has just begun to drain often has no connections at all: it is looked at once more, soon, if it is little. */
const FIRST_LOOK = 1_000;
const LITTLE = 4;

/** When to look at what drains. */
export class DrainClock {
  #allAt: number | undefined;
  #freshAt: number | undefined;

  /** Something may have begun to drain, or ended. */
  note(draining: Draining, now: number): void {
    if (draining.size === 0) {
      this.#allAt = undefined;
      this.#freshAt = undefined;
      return;
    }
    this.#allAt ??= now + PERIOD;
    const fresh = draining.fresh().length;
    this.#freshAt = fresh > 0 && fresh <= LITTLE ? (this.#freshAt ?? now + FIRST_LOOK) : undefined;
  }

  /** The servers to look at now. */
  due(draining: Draining, now: number): readonly VirtualServerKey[] {
    if (this.#allAt !== undefined && now >= this.#allAt) return draining.servers();
    return this.#freshAt !== undefined && now >= this.#freshAt ? draining.fresh() : [];
  }

  checked(now: number): void {
    if (this.#allAt !== undefined && now >= this.#allAt) this.#allAt = undefined;
    this.#freshAt = undefined;
  }

  /** Milliseconds until something is due; undefined: nothing drains. */
  next(now: number): number | undefined {
    const times = [this.#allAt, this.#freshAt].filter((at) => at !== undefined);
    return times.length === 0 ? undefined : Math.max(0, Math.min(...times) - now);
  }
}

interface ReleasedServer {
  readonly server: VirtualServerKey;
  readonly destinations: readonly DestinationKey[];
}

/** Deletes the destinations of these servers that drained and have no connection. */
export async function endDrained(
  port: IpvsPort,
  servers: readonly VirtualServerKey[],
  draining: Draining,
  options: ResolvedOptions,
): Promise<void> {
  const gone: ReleasedServer[] = [];
  for await (const server of port.servers.connections(servers)) {
    const destinations = await inSlices(draining.finished(server), options);
    if (destinations.length > 0) gone.push({ server, destinations });
  }
  draining.checked();
  if (gone.length === 0) return;
  await port.servers.change(deletions(gone), options.turn);
  for (const { server, destinations } of gone) await inSlices(draining.remove(server, destinations), options);
}

function* deletions(gone: readonly ReleasedServer[]): Generator<ServerCommand, void, void> {
  for (const { server, destinations } of gone) {
    for (const destination of destinations) yield { kind: "delete-destination", server, destination };
  }
}
