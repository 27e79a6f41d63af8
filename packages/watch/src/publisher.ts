import { errorText } from "@fairlead/base";
import { BadObjects } from "./bad-objects.ts";
import type { ObjectChange, ObjectKey, ResourceName, Subscription } from "./change.ts";
import type { OnReport } from "./report.ts";

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
