import type { ObjectKey, ResourceName } from "./change.ts";
import type { OnReport } from "./report.ts";

/**
 * Objects of one resource that can't be used: each is reported once, and again only with another error or after it was
 * good.
 */
export class BadObjects {
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
