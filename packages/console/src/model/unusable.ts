import type { Problem } from "@fairlead/core";
import type { SourceReport } from "@fairlead/watch";
import type { UnusableAnswer, UnusableRow } from "../protocol/index.ts";

type BadObject = Extract<SourceReport, { readonly type: "badObject" }>;

/** More of them are counted, not told. */
const MOST_TOLD = 100;
/** Nor is more kept than this: a client could write any number of bad objects. */
const MOST_KEPT = 10_000;

/** By the names that sources give them. */
const KINDS: Readonly<Record<string, string>> = {
  services: "Service",
  endpointSlices: "EndpointSlice",
  node: "Node",
  serviceCIDRs: "ServiceCIDR",
};

/** Objects that cannot be used, or not as they are: each with its fields and why, until it is good or gone. */
export class UnusableObjects {
  readonly #rows = new Map<string, readonly UnusableRow[]>();
  readonly #now: () => number;
  /** Called after each change. */
  onChange: () => void = () => {};

  /** @param now milliseconds since the epoch */
  constructor(now: () => number = () => Date.now()) {
    this.#now = now;
  }

  /** All problems that one object has now; none, when it has none anymore. */
  take(kind: string, namespace: string, name: string, problems: readonly Problem[]): void {
    const object = `${kind} ${namespace === "" ? "" : `${namespace}/`}${name}`;
    const at = this.#now();
    this.#put(
      object,
      problems.map(({ field, value, reason }) => ({ object, at, field, value, why: reason })),
    );
  }

  /** What a source cannot make anything of. */
  report({ resource, key, file, error }: Pick<BadObject, "resource" | "key" | "file" | "error">): void {
    const kind = KINDS[resource] ?? resource;
    const object = key === undefined ? `${kind} without a name` : `${kind} ${key.replace(/^\//, "")}`;
    const row = { object, at: this.#now(), field: "", value: "", why: error, ...(file !== undefined && { file }) };
    this.#put(object, [row]);
  }

  /** In the order in which they were found. */
  now(): UnusableAnswer {
    const rows = [...this.#rows.values()].flat();
    return { objects: this.#rows.size, rows: rows.slice(0, MOST_TOLD) };
  }

  #put(object: string, rows: readonly UnusableRow[]): void {
    const isKnown = this.#rows.delete(object);
    const isKept = rows.length > 0 && this.#rows.size < MOST_KEPT;
    if (isKept) this.#rows.set(object, rows);
    if (isKnown || isKept) this.onChange();
  }
}
