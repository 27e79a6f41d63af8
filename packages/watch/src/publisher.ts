/**
 * What passes changes on to the consumer: one publisher for each resource, in the order in which lists and events come.
 */

import { errorText } from "@fairlead/base";
import type { ObjectChange, ObjectKey, ResourceName, Subscription, Subscriptions } from "./change.ts";
import type { OnReport } from "./report.ts";
import { otherName } from "./resources.ts";

/** The consumer's `onChange` threw: what it holds is unknown, so the source ends. */
export class ConsumerError extends Error {
  override readonly name = "ConsumerError";
}

/** Hands the changes of one resource to its subscriber. Keeps nothing of an object but its key and version. */
export interface Publisher {
  readonly resource: ResourceName;
  /** One object as it is now. The same version as last time is given once. */
  upsert(key: ObjectKey, version: string, raw: unknown): Promise<void>;
  remove(key: ObjectKey): Promise<void>;
  /** One object that can't be read: it is reported once, and what was given of it before stays. */
  skip(key: ObjectKey | undefined, error: string): void;
  /** All that exists has been given. Reported once. */
  complete(): Promise<void>;
  /** Begins a complete list; what an unfinished one before it had given stays until this one ends. */
  beginList(): ListSession;
}

export interface ListSession {
  /** Objects in the list so far. */
  readonly size: number;
  /**
   * One object of the list, given on whether its version is known or not: versions may restart with a restored etcd.
   */
  upsert(key: ObjectKey, version: string, raw: unknown): Promise<void>;
  remove(key: ObjectKey): Promise<void>;
  /** As the publisher's; the list holds the object all the same. */
  skip(key: ObjectKey | undefined, error: string): void;
  /** The list is complete: deletes what it did not hold and, the first time, says so. */
  end(): Promise<void>;
}

export function publisher<T>(resource: ResourceName, to: Subscription<T>, onReport: OnReport): Publisher {
  const given = new Map<ObjectKey, string>();
  const bad = new BadObjects(resource, onReport);
  let synced = false;

  const decode = (key: ObjectKey, raw: unknown): T | undefined => {
    try {
      const object = to.decode(raw);
      bad.forget(key);
      return object;
    } catch (error) {
      bad.report(key, errorText(error));
      return undefined;
    }
  };
  const publish = async (change: ObjectChange<T>) => {
    try {
      await to.onChange(change);
    } catch (error) {
      throw new ConsumerError(`the consumer of ${resource} failed: ${errorText(error)}`, { cause: error });
    }
  };
  const withdraw = async (key: ObjectKey) => {
    if (given.delete(key)) await publish({ type: "delete", key });
  };
  const remove = (key: ObjectKey) => {
    bad.forget(key);
    return withdraw(key);
  };
  const skip = (key: ObjectKey | undefined, error: string) => bad.report(key, error);
  const give = async (key: ObjectKey, version: string, raw: unknown) => {
    const object = decode(key, raw);
    if (object === undefined) return withdraw(key);
    given.set(key, version);
    await publish({ type: "upsert", key, object });
  };
  const upsert = async (key: ObjectKey, version: string, raw: unknown) => {
    if (given.get(key) !== version) await give(key, version, raw);
  };
  const complete = async () => {
    if (synced) return;
    synced = true;
    await publish({ type: "synced" });
  };
  const endList = async (seen: ReadonlySet<ObjectKey>) => {
    for (const key of [...given.keys()]) if (!seen.has(key)) await remove(key);
    await complete();
  };

  return {
    resource,
    upsert,
    remove,
    skip,
    complete,
    beginList: () => listSession({ give, remove, skip, end: endList }),
  };
}

/**
 * A publisher for each resource that is subscribed.
 *
 * @throws TypeError when a resource is subscribed twice: only one of them would hear of it
 */
export function publishersOf<S, E, N, C>(
  to: Subscriptions<S, E, N, C>,
  onReport: OnReport,
): ReadonlyMap<ResourceName, Publisher> {
  const publishers: Publisher[] = [];
  if (to.services) publishers.push(publisher("services", to.services, onReport));
  if (to.endpointSlices) publishers.push(publisher("endpointSlices", to.endpointSlices, onReport));
  if (to.node) publishers.push(publisher("node", to.node, onReport));
  if (to.serviceCIDRs) publishers.push(publisher("serviceCIDRs", to.serviceCIDRs, onReport));
  for (const other of to.others ?? []) publishers.push(publisher(otherName(other.resource), other, onReport));
  const byResource = new Map(publishers.map((one) => [one.resource, one]));
  const twice = publishers.find((one) => byResource.get(one.resource) !== one);
  if (twice !== undefined) throw new TypeError(`${twice.resource} is subscribed twice; use one subscription for both`);
  return byResource;
}

/**
 * Runs the parts of a source side by side; the first that fails ends the others.
 *
 * @throws what the consumer threw
 */
export async function runTogether(
  parts: readonly ((signal: AbortSignal) => Promise<void>)[],
  signal: AbortSignal,
): Promise<void> {
  const stop = new AbortController();
  const abort = () => stop.abort();
  signal.addEventListener("abort", abort);
  if (signal.aborted) stop.abort();
  try {
    const ends = await Promise.allSettled(parts.map((part) => part(stop.signal).catch((error) => failed(stop, error))));
    const failure = ends.find((end) => end.status === "rejected");
    if (failure !== undefined) throw failure.reason;
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

interface ListPorts extends Pick<Publisher, "remove" | "skip"> {
  readonly give: Publisher["upsert"];
  readonly end: (seen: ReadonlySet<ObjectKey>) => Promise<void>;
}

function listSession({ give, remove, skip, end }: ListPorts): ListSession {
  const seen = new Set<ObjectKey>();
  return {
    get size() {
      return seen.size;
    },
    upsert: (key, version, raw) => {
      seen.add(key);
      return give(key, version, raw);
    },
    remove: (key) => {
      seen.delete(key);
      return remove(key);
    },
    skip: (key, error) => {
      if (key !== undefined) seen.add(key);
      skip(key, error);
    },
    end: () => end(seen),
  };
}

function failed(stop: AbortController, error: unknown): never {
  stop.abort();
  throw error instanceof ConsumerError ? error.cause : error;
}

/**
 * Objects of one resource that can't be used: each is reported once, and again only with another error or after it was
 * good.
 */
class BadObjects {
  readonly #resource: ResourceName;
  readonly #onReport: OnReport;
  readonly #errors = new Map<ObjectKey | undefined, string>();

  constructor(resource: ResourceName, onReport: OnReport) {
    this.#resource = resource;
    this.#onReport = onReport;
  }

  /** @param key undefined: of all objects without a name there is one report */
  report(key: ObjectKey | undefined, error: string): void {
    if (this.#errors.get(key) === error) return;
    this.#errors.set(key, error);
    this.#onReport({ type: "badObject", resource: this.#resource, ...(key === undefined ? {} : { key }), error });
  }

  forget(key: ObjectKey): void {
    this.#errors.delete(key);
  }
}
