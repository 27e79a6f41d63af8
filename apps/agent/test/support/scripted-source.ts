import type {
  ObjectKey,
  ObjectSource,
  OtherState,
  OtherSubscription,
  Subscription,
  Subscriptions,
} from "@fairlead/watch";

interface RawObject {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

type Name = Exclude<keyof Subscriptions, "others">;

const RESOURCES: Readonly<Record<string, Name>> = {
  Service: "services",
  EndpointSlice: "endpointSlices",
  Node: "node",
  ServiceCIDR: "serviceCIDRs",
};

/** A source of objects that does what a test tells it, in the order it tells. */
export class ScriptedSource implements ObjectSource {
  #subscriptions: Subscriptions = {};
  readonly #given = new Set<string>();

  async run<S, E, N, C>(subscriptions: Subscriptions<S, E, N, C>, signal: AbortSignal): Promise<void> {
    this.#subscriptions = erased(subscriptions);
    const { promise, resolve } = Promise.withResolvers<void>();
    signal.addEventListener("abort", () => resolve());
    await promise;
  }

  async put(...objects: readonly RawObject[]): Promise<void> {
    for (const raw of objects) {
      const subscription = this.#of(raw.kind);
      const object = subscription.decode(raw);
      const key = objectKey(raw);
      if (object === undefined) await this.remove(raw);
      else await subscription.onChange({ type: "upsert", key, object });
      if (object !== undefined) this.#given.add(`${raw.kind} ${key}`);
    }
  }

  /** To those that follow all objects of the kind, and not the own one only. */
  async putOther(...objects: readonly RawObject[]): Promise<void> {
    for (const raw of objects) {
      for (const { decode, onChange } of this.#others(raw.kind)) {
        await onChange({ type: "upsert", key: objectKey(raw), object: decode(raw) });
      }
    }
  }

  async remove(...objects: readonly RawObject[]): Promise<void> {
    for (const raw of objects) {
      if (!this.#given.delete(`${raw.kind} ${objectKey(raw)}`)) continue;
      await this.#of(raw.kind).onChange({ type: "delete", key: objectKey(raw) });
    }
  }

  /** The first lists of these are complete. */
  async synced(...names: readonly Name[]): Promise<void> {
    for (const name of names) await this.#subscriptions[name]?.onChange({ type: "synced" });
    if (names.includes("node")) for (const other of this.#others("Node")) await other.onChange({ type: "synced" });
  }

  /** What the server says of the other resources of this kind; with `listed` their first list is complete, too. */
  async state(kind: string, state: OtherState): Promise<void> {
    for (const other of this.#others(kind)) {
      if (state === "listed") await other.onChange({ type: "synced" });
      other.onState(state);
    }
  }

  #others(kind: string): readonly OtherSubscription[] {
    return (this.#subscriptions.others ?? []).filter(({ resource }) => resource.kind === kind);
  }

  #of(kind: string): Subscription<unknown> {
    const resource = RESOURCES[kind];
    const subscription = resource === undefined ? this.#others(kind)[0] : this.#subscriptions[resource];
    if (subscription === undefined) throw new Error(`nobody follows ${kind}`);
    return subscription;
  }
}

function objectKey({ metadata }: RawObject): ObjectKey {
  return `${metadata.namespace ?? ""}/${metadata.name}`;
}

/** The consumer gets back only what its own `decode` made, so the type of the objects does not matter in between. */
function erased(subscriptions: object): Subscriptions {
  return subscriptions;
}
