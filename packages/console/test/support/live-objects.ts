import type { RawObject } from "@fairlead/testkit";
import type {
  ObjectKey,
  ObjectSource,
  OtherState,
  OtherSubscription,
  Subscription,
  Subscriptions,
} from "@fairlead/watch";

/** Objects in memory that a test changes while they are followed, by as many as like. */
export class LiveObjects implements ObjectSource {
  readonly #objects = new Map<string, RawObject>();
  readonly #states: Readonly<Record<string, OtherState>>;
  readonly #runs = new Set<ReadonlyMap<string, Subscription<unknown>>>();

  /** @param states of resources that cannot be read, by kind */
  constructor(objects: readonly RawObject[], states: Readonly<Record<string, OtherState>> = {}) {
    for (const object of objects) this.#objects.set(nameOf(object), object);
    this.#states = states;
  }

  async run<S, E, N, C>(subscriptions: Subscriptions<S, E, N, C>, signal: AbortSignal): Promise<void> {
    const { services, endpointSlices, serviceCIDRs, others = [] } = subscriptions;
    const to = new Map<string, Subscription<unknown>>();
    if (services !== undefined) to.set("Service", services as Subscription<unknown>);
    if (endpointSlices !== undefined) to.set("EndpointSlice", endpointSlices as Subscription<unknown>);
    if (serviceCIDRs !== undefined) to.set("ServiceCIDR", serviceCIDRs as Subscription<unknown>);
    for (const other of others) if (!this.#cannotRead(other)) to.set(other.resource.kind, selecting(other));
    this.#runs.add(to);
    for (const object of this.#objects.values()) await give(to, object);
    for (const one of to.values()) await one.onChange({ type: "synced" });
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
    this.#runs.delete(to);
  }

  async put(object: RawObject): Promise<void> {
    this.#objects.set(nameOf(object), object);
    for (const to of this.#runs) await give(to, object);
  }

  async remove(object: RawObject): Promise<void> {
    this.#objects.delete(nameOf(object));
    for (const to of this.#runs) await to.get(object.kind)?.onChange({ type: "delete", key: objectKey(object) });
  }

  #cannotRead({ resource, onState }: OtherSubscription): boolean {
    const state = this.#states[resource.kind];
    if (state !== undefined) onState(state);
    return state !== undefined;
  }
}

async function give(to: ReadonlyMap<string, Subscription<unknown>>, object: RawObject): Promise<void> {
  const one = to.get(object.kind);
  const decoded = one?.decode(object);
  if (decoded !== undefined) await one?.onChange({ type: "upsert", key: objectKey(object), object: decoded });
}

function nameOf(object: RawObject): string {
  return `${object.kind} ${objectKey(object)}`;
}

function objectKey({ metadata }: Pick<RawObject, "metadata">): ObjectKey {
  return `${metadata.namespace ?? ""}/${metadata.name}`;
}

/** One object of a resource may be all that is wanted. */
function selecting(other: OtherSubscription): OtherSubscription {
  const { only } = other.resource;
  if (only === undefined) return other;
  const wanted = objectKey({ metadata: only });
  return { ...other, decode: (raw) => (objectKey(raw as RawObject) === wanted ? other.decode(raw) : undefined) };
}
