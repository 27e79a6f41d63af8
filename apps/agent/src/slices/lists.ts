import type { OtherState } from "@fairlead/watch";
import type { Log } from "../log/log.ts";
import type { Needed } from "./subscriptions.ts";

const NEEDED: readonly Needed[] = ["services", "pods", "nodes", "endpointSlices", "serviceCIDRs"];

/** The first complete lists, without which nothing is written. */
export class Lists {
  readonly #missing = new Set<Needed>(NEEDED);
  readonly #states = new Map<string, OtherState>();
  readonly #log: Log;
  readonly #complete = Promise.withResolvers<void>();

  constructor(log: Log) {
    this.#log = log;
  }

  get ready(): boolean {
    return this.#missing.size === 0;
  }

  /** Resolves when all are in. */
  get complete(): Promise<void> {
    return this.#complete.promise;
  }

  synced(resource: Needed): void {
    this.#missing.delete(resource);
    if (this.ready) this.#complete.resolve();
  }

  /** Says once what the role does not allow. An API server that cannot be reached is reported by the source. */
  state(resource: Needed | "networks", state: OtherState): void {
    if (this.#states.get(resource) === state) return;
    this.#states.set(resource, state);
    if (state === "forbidden") {
      this.#log.error("The role does not allow reading a resource; EndpointSlices stay as they are, retrying", {
        resource,
      });
    } else if (resource === "networks" && state === "absent") {
      this.#log.info("No NetworkAttachmentDefinitions in this cluster; a missing network is not reported");
    }
  }
}
