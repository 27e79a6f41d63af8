import { setTimeout as sleep } from "node:timers/promises";
import type { ApiClient } from "@fairlead/lab/control-plane/api-client";
import { objectPath } from "@fairlead/lab/control-plane/api-client";
import { createSlices, deleteSlices, moveEndpoints } from "../cluster/load.ts";
import { now } from "../cluster/now.ts";
import { movedAddress, type Size, serviceObject } from "../cluster/objects.ts";
import { rollOut } from "../cluster/roll-out.ts";
import type { RunningProxy } from "../proxy/running.ts";

/** How often each kind of change is measured. */
export interface Counts {
  readonly changes: number;
  /** A service added and removed again. */
  readonly services: number;
  /** Endpoints of the rolling update. */
  readonly rolling: number;
}

/** What a change took from the request on, in milliseconds. */
export interface Timing {
  /** Until the kernel had the rules. */
  readonly synced: number;
  /** Until the API server had answered: no proxy hears of a change much earlier. */
  readonly answered: number;
}

/** The changes that a proxy is given while it is measured, on objects of one size. */
export class Workload {
  readonly #api: ApiClient;
  readonly #size: Size;
  readonly #patienceMs: number;
  /** No sync for as long as this: there is nothing left to do. Longer than any single change took. */
  #quietMs = 300;

  /** @param patienceMs what a sync may take at most */
  constructor(api: ApiClient, size: Size, patienceMs: number) {
    this.#api = api;
    this.#size = size;
    this.#patienceMs = patienceMs;
  }

  /**
   * Gives one endpoint another address, `count` times.
   */
  async changeEndpoint(proxy: RunningProxy, count: number): Promise<readonly Timing[]> {
    const times: Timing[] = [];
    for (let number = 1; number <= count; number++) times.push(await this.#move(proxy, movedAddress(number)));
    return times;
  }

  /** The same with two addresses in turn: each change undoes the one before. */
  async swapEndpoint(proxy: RunningProxy, count: number): Promise<void> {
    for (let number = 1; number <= count; number++) await this.#move(proxy, movedAddress(number % 2));
  }

  /** Adds a service with its endpoints and removes it, `count` times. */
  async addAndRemove(
    proxy: RunningProxy,
    count: number,
  ): Promise<{ readonly added: readonly Timing[]; readonly removed: readonly Timing[] }> {
    const index = this.#size.services;
    const service = serviceObject(index);
    const added: Timing[] = [];
    const removed: Timing[] = [];
    for (let round = 0; round < count; round++) {
      await createSlices(this.#api, index, this.#size.endpoints);
      await proxy.log.lastSync(this.#quietMs);
      added.push(await this.#timed(proxy, () => this.#api.create(service)));
      removed.push(await this.#timed(proxy, () => this.#api.delete(objectPath(service))));
      await deleteSlices(this.#api, index, this.#size.endpoints);
      await proxy.log.lastSync(this.#quietMs);
    }
    return { added, removed };
  }

  /**
   * Replaces endpoints as Kubernetes' controller does when workloads roll.
   *
   * @returns from the first request on, until the last answer and the last rules
   */
  async rollOut(proxy: RunningProxy, count: number): Promise<Timing> {
    const started = now();
    await rollOut(this.#api, this.#size, count, ROLLED_FROM);
    const answered = now() - started;
    return { synced: (await proxy.log.lastSync(this.#quietMs)) - started, answered };
  }

  /** Gives all endpoints their first addresses. */
  async restore(rolling: number): Promise<void> {
    const { services, endpoints } = this.#size;
    const rolled = Math.min(services, Math.ceil(rolling / endpoints));
    const touched = new Set([this.#middle, ...Array.from({ length: rolled }, (_, index) => index)]);
    for (const index of touched) await moveEndpoints(this.#api, index, endpoints, new Map());
  }

  get #middle(): number {
    return Math.floor(this.#size.services / 2);
  }

  #move(proxy: RunningProxy, to: string): Promise<Timing> {
    const moved = new Map([[0, to]]);
    return this.#timed(proxy, () => moveEndpoints(this.#api, this.#middle, this.#size.endpoints, moved, 0));
  }

  async #timed(proxy: RunningProxy, request: () => Promise<unknown>): Promise<Timing> {
    const asked = now();
    await request();
    const answered = now() - asked;
    const synced = (await proxy.log.syncAfter(asked, this.#patienceMs)) - asked;
    this.#quietMs = Math.max(this.#quietMs, 2 * synced);
    await sleep(BETWEEN_MS);
    return { synced, answered };
  }
}

/** Number of a rolling update's first address. */
const ROLLED_FROM = 1000;
/** Longer than `minSyncPeriod`: no change waits for the one before. */
const BETWEEN_MS = 50;
