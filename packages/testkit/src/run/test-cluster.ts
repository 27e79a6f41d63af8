import { toEnd } from "@fairlead/base";
import {
  ClusterState,
  decodeEndpointSlice,
  decodeService,
  type ForwardingPlan,
  type FrontendLookup,
  type IPFamily,
  type Ownership,
  Planner,
  type PlannerOptions,
  type PlanStep,
  type ServiceKey,
} from "@fairlead/core";
import type { RawObject } from "../objects/raw.ts";

/** Raw objects to plans, as the agent does it, with the memory of owners. */
export class TestCluster {
  readonly #state = new ClusterState();
  readonly #planner: Planner;
  readonly #memory = new Map<string, Ownership>();

  constructor(options: PlannerOptions) {
    this.#planner = new Planner(options);
  }

  plan(family: IPFamily): ForwardingPlan {
    return this.#planner.plan(family);
  }

  lookup(family: IPFamily): FrontendLookup {
    return this.#planner.lookup(family);
  }

  /**
   * What cannot be used is taken out, as if it were deleted; kinds other than Service and EndpointSlice are passed
   * over.
   */
  put(...objects: readonly RawObject[]): void {
    for (const raw of objects) {
      if (raw.kind === "Service") {
        const { object } = decodeService(raw);
        if (object === undefined) this.remove(raw);
        else this.#state.upsertService(object);
      } else if (raw.kind === "EndpointSlice") {
        const { object } = decodeEndpointSlice(raw);
        if (object === undefined) this.remove(raw);
        else this.#state.upsertSlice(object);
      }
    }
  }

  remove(...objects: readonly RawObject[]): void {
    for (const { kind, metadata } of objects) {
      const namespace = metadata.namespace ?? "default";
      if (kind === "Service") this.#state.deleteService(namespace, metadata.name);
      else if (kind === "EndpointSlice") this.#state.deleteSlice(namespace, metadata.name);
    }
  }

  setOptions(options: PlannerOptions): void {
    this.#planner.setOptions(options);
  }

  /** Plans what changed since the last call. */
  replan(): PlanStep {
    const memory = { get: (service: ServiceKey, family: IPFamily) => this.#memory.get(`${family} ${service}`) };
    const step = toEnd(this.#planner.replan(this.#state, this.#state.takeDirty().services, memory));
    for (const { service, family, ownership } of step.memory) {
      if (ownership === undefined) this.#memory.delete(`${family} ${service}`);
      else this.#memory.set(`${family} ${service}`, ownership);
    }
    return step;
  }
}
