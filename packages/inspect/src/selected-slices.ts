import { type ServiceKey, serviceKey, splitKey } from "@fairlead/core";
import type { ObjectKey, Subscription } from "@fairlead/watch";

/** A subscription of EndpointSlices that passes on those of few services, once it is known which. */
export interface SelectedSlices {
  readonly subscription: Subscription<unknown>;
  /** From now on slices of these services are passed on, those that came before first. */
  release(services: ReadonlySet<ServiceKey>): void;
}

/** Slices of other services are not even decoded: of many services that is most of the work. */
export function selectedSlices<T>(to: Subscription<T>): SelectedSlices {
  const held = new Map<ObjectKey, unknown>();
  let wanted: ReadonlySet<ServiceKey> | undefined;
  const give = (key: ObjectKey, raw: unknown) => {
    const service = serviceOf(key, raw);
    if (service === undefined || wanted?.has(service) !== true) return;
    const object = to.decode(raw);
    if (object !== undefined) return to.onChange({ type: "upsert", key, object });
  };
  return {
    subscription: {
      decode: (raw) => raw,
      onChange: (change) => {
        if (change.type !== "upsert") return to.onChange(change);
        if (wanted !== undefined) return give(change.key, change.object);
        held.set(change.key, change.object);
      },
    },
    release: (services) => {
      wanted = services;
      for (const [key, raw] of held) give(key, raw);
      held.clear();
    },
  };
}

/** By the label that names it; undefined: there is none that can be read. */
function serviceOf(key: ObjectKey, raw: unknown): ServiceKey | undefined {
  const name = fieldOf(fieldOf(fieldOf(raw, "metadata"), "labels"), "kubernetes.io/service-name");
  return typeof name === "string" ? serviceKey(splitKey(key).namespace, name) : undefined;
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Object.getOwnPropertyDescriptor(value, name)?.value : undefined;
}
