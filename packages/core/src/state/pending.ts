import type { EndpointSlice, ServiceKey } from "../objects.ts";

/** What changed since it was last asked. */
export interface DirtyServices {
  /** Services whose plan may differ now. */
  readonly services: ReadonlySet<ServiceKey>;
  /**
   * When what caused the changes happened (annotation endpoints.kubernetes.io/last-change-trigger-time of each changed
   * slice), in milliseconds since the epoch; for network_programming_duration_seconds.
   */
  readonly triggerTimes: ReadonlyMap<ServiceKey, readonly number[]>;
}

/**
 * Changes seen in all and not yet taken, for the metrics sync_proxy_rules_{service,endpoint}_changes_{total,pending}.
 */
export interface ChangeCounts {
  /** Since the start. */
  readonly total: number;
  /** Not yet taken. */
  readonly pending: number;
}

/** Collects what is dirty between two takes. */
export class PendingChanges {
  readonly #ignoreTriggersBefore: number;
  #services = new Set<ServiceKey>();
  #triggerTimes = new Map<ServiceKey, number[]>();
  #pendingServices = new Set<ServiceKey>();
  #pendingSlices = 0;
  #seenServices = 0;
  #seenSlices = 0;

  /**
   * @param ignoreTriggersBefore milliseconds since the epoch: changes older than the proxy say nothing of its latency
   */
  constructor(ignoreTriggersBefore: number) {
    this.#ignoreTriggersBefore = ignoreTriggersBefore;
  }

  sawService(key: ServiceKey, changed: boolean): void {
    this.#seenServices++;
    if (!changed) return;
    this.#pendingServices.add(key);
    this.#services.add(key);
  }

  sawSlice(changed: boolean): void {
    this.#seenSlices++;
    if (changed) this.#pendingSlices++;
  }

  touch(key: ServiceKey): void {
    this.#services.add(key);
  }

  addTrigger(key: ServiceKey, slice: EndpointSlice): void {
    const time = slice.triggerTime;
    if (time === undefined || time <= this.#ignoreTriggersBefore) return;
    const times = this.#triggerTimes.get(key);
    if (times === undefined) this.#triggerTimes.set(key, [time]);
    else times.push(time);
  }

  /** A slice that goes carries the time of its last change, not that of its end: nothing can be measured then. */
  dropTriggers(key: ServiceKey): void {
    this.#triggerTimes.delete(key);
  }

  get any(): boolean {
    return this.#services.size > 0;
  }

  get serviceCounts(): ChangeCounts {
    return { total: this.#seenServices, pending: this.#pendingServices.size };
  }

  get endpointCounts(): ChangeCounts {
    return { total: this.#seenSlices, pending: this.#pendingSlices };
  }

  take(): DirtyServices {
    const taken = { services: this.#services, triggerTimes: this.#triggerTimes };
    this.#services = new Set();
    this.#triggerTimes = new Map();
    this.#pendingServices = new Set();
    this.#pendingSlices = 0;
    return taken;
  }
}
