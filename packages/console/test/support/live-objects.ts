import type { RawObject } from "@fairlead/testkit";
import type { ObjectKey, ObjectSource, Subscription, Subscriptions } from "@fairlead/watch";

/** Objects in memory that a test changes while they are followed. */
export class LiveObjects implements ObjectSource {
  readonly #objects: RawObject[];
  readonly #to = new Map<string, Subscription<unknown>>();

  constructor(objects: readonly RawObject[]) {
    this.#objects = [...objects];
  }

  async run<S, E, N, C>(subscriptions: Subscriptions<S, E, N, C>, signal: AbortSignal): Promise<void> {
    const { services, endpointSlices, others = [] } = subscriptions;
    this.#to.set("Service", services as Subscription<unknown>);
    this.#to.set("EndpointSlice", endpointSlices as Subscription<unknown>);
    for (const other of others) this.#to.set(other.resource.kind, other);
    for (const object of this.#objects) await this.put(object);
    for (const to of this.#to.values()) await to.onChange({ type: "synced" });
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
  }

  async put(object: RawObject): Promise<void> {
    const to = this.#to.get(object.kind);
    const decoded = to?.decode(object);
    if (decoded !== undefined) await to?.onChange({ type: "upsert", key: objectKey(object), object: decoded });
  }

  async remove(object: RawObject): Promise<void> {
    await this.#to.get(object.kind)?.onChange({ type: "delete", key: objectKey(object) });
  }
}

function objectKey({ metadata }: RawObject): ObjectKey {
  return `${metadata.namespace ?? ""}/${metadata.name}`;
}
