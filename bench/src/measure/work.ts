import { setTimeout as sleep } from "node:timers/promises";
import type { ApiClient } from "@fairlead/e2e/control-plane/api-client";
import { objectPath } from "@fairlead/e2e/control-plane/api-client";
import { createSlice, deleteSlice, moveEndpoints, type Size } from "../cluster/load.ts";
import { movedAddress, serviceObject } from "../cluster/objects.ts";
import type { RunningProxy } from "../proxy/running.ts";

/** How often each kind of change is measured. */
export interface Counts {
  readonly changes: number;
  /** A service added and removed again. */
  readonly services: number;
  /** Endpoints of the rolling update. */
  readonly rolling: number;
}

/** The changes that a proxy is given while it is measured, on objects of one size. */
export class Work {
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
   *
   * @returns milliseconds from the request to the API until the kernel had the rules, of each
   */
  async changeEndpoint(proxy: RunningProxy, count: number): Promise<readonly number[]> {
    const times: number[] = [];
    for (let number = 1; number <= count; number++) times.push(await this.#move(proxy, movedAddress(number)));
    return times;
  }

  /** The same with two addresses in turn: each change undoes the one before. */
  async swapEndpoint(proxy: RunningProxy, count: number): Promise<void> {
    for (let number = 1; number <= count; number++) await this.#move(proxy, movedAddress(number % 2));
  }

  /** Adds a service with its endpoints and removes it, `count` times; milliseconds as `changeEndpoint`. */
  async addAndRemove(
    proxy: RunningProxy,
    count: number,
  ): Promise<{ readonly added: readonly number[]; readonly removed: readonly number[] }> {
    const index = this.#size.services;
    const service = serviceObject(index);
    const added: number[] = [];
    const removed: number[] = [];
    for (let round = 0; round < count; round++) {
      await createSlice(this.#api, index, this.#size.endpoints);
      await proxy.log.lastSync(this.#quietMs);
      added.push(await this.#timed(proxy, () => this.#api.create(service)));
      removed.push(await this.#timed(proxy, () => this.#api.delete(objectPath(service))));
      await deleteSlice(this.#api, index);
      await proxy.log.lastSync(this.#quietMs);
    }
    return { added, removed };
  }

  /**
   * Replaces endpoints one after the other, service by service, as fast as the API server takes it.
   *
   * @returns milliseconds from the first request until the kernel had the last rules
   */
  async rollOut(proxy: RunningProxy, count: number): Promise<number> {
    const { services, endpoints } = this.#size;
    const started = now();
    for (let done = 0; done < Math.min(count, services * endpoints); ) {
      const index = Math.floor(done / endpoints);
      const moved = new Map<number, string>();
      for (let place = 0; place < endpoints && done < count; place++, done++) {
        moved.set(place, movedAddress(1000 + done));
        await moveEndpoints(this.#api, index, endpoints, moved);
      }
    }
    return (await proxy.log.lastSync(this.#quietMs)) - started;
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

  #move(proxy: RunningProxy, to: string): Promise<number> {
    const moved = new Map([[0, to]]);
    return this.#timed(proxy, () => moveEndpoints(this.#api, this.#middle, this.#size.endpoints, moved));
  }

  async #timed(proxy: RunningProxy, request: () => Promise<unknown>): Promise<number> {
    const asked = now();
    await request();
    const synced = await proxy.log.syncAfter(asked, this.#patienceMs);
    this.#quietMs = Math.max(this.#quietMs, 2 * (synced - asked));
    await sleep(BETWEEN_MS);
    return synced - asked;
  }
}

/** Longer than `minSyncPeriod`: no change waits for the one before. */
const BETWEEN_MS = 50;

/** Milliseconds since the epoch, finer than Date.now. */
function now(): number {
  return performance.timeOrigin + performance.now();
}
