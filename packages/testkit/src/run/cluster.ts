import {
  ClusterState,
  decodeEndpointSlice,
  decodeService,
  type EndpointFilter,
  type ForwardingPlan,
  type IPFamily,
  type ModeSemantics,
  type Ownership,
  Planner,
  type PlannerOptions,
  type PlanStep,
  type ServiceKey,
} from "@fairlead/core";
import { nodeA, nodeAZone, secondNodeAddress } from "../addresses/hosts.ts";
import { type AgentOptions, detectorOf, nodePortAddressesOf } from "../conformance/options.ts";
import type { RawObject } from "../objects/raw.ts";

const LOOPBACK = { IPv4: "127.0.0.1", IPv6: "::1" } as const;
const families: readonly IPFamily[] = ["IPv4", "IPv6"];

export interface ClusterOptions {
  readonly options: AgentOptions;
  readonly semantics: ModeSemantics;
  readonly filter: EndpointFilter;
}

/** A cluster that goes through a history of states, and its plans on node-a after each of them. */
export class PlannedCluster {
  readonly #state = new ClusterState();
  readonly #planner: Planner;
  readonly #memory = new Map<string, Ownership>();
  #objects = new Map<string, RawObject>();

  constructor(options: ClusterOptions) {
    this.#planner = new Planner(plannerOptions(options));
  }

  /** Takes in the differences between the last state and this one, which is complete. */
  advance(objects: readonly RawObject[]): PlanStep {
    const next = new Map(objects.map((object) => [keyOf(object), object]));
    for (const [key, object] of this.#objects) if (!next.has(key)) this.#remove(object);
    for (const object of next.values()) this.#put(object);
    this.#objects = next;
    return this.#replan();
  }

  plan(family: IPFamily): ForwardingPlan {
    return this.#planner.plan(family);
  }

  #replan(): PlanStep {
    const memory = { get: (service: ServiceKey, family: IPFamily) => this.#memory.get(`${family} ${service}`) };
    const slices = this.#planner.replan(this.#state, this.#state.takeDirty().services, memory);
    const step = toEnd(slices);
    for (const { service, family, ownership } of step.memory) {
      if (ownership === undefined) this.#memory.delete(`${family} ${service}`);
      else this.#memory.set(`${family} ${service}`, ownership);
    }
    return step;
  }

  #put(raw: RawObject): void {
    if (raw.kind === "Service") {
      const { namespace, name, object } = decodeService(raw);
      if (object) this.#state.upsertService(object);
      else this.#state.deleteService(namespace, name);
    }
    if (raw.kind === "EndpointSlice") {
      const { namespace, name, object } = decodeEndpointSlice(raw);
      if (object) this.#state.upsertSlice(object);
      else this.#state.deleteSlice(namespace, name);
    }
  }

  #remove({ kind, metadata: { namespace = "", name } }: RawObject): void {
    if (kind === "Service") this.#state.deleteService(namespace, name);
    if (kind === "EndpointSlice") this.#state.deleteSlice(namespace, name);
  }
}

function plannerOptions({ options, semantics, filter }: ClusterOptions): PlannerOptions {
  const each = <T>(of: (family: IPFamily) => T) => ({ IPv4: of("IPv4"), IPv6: of("IPv6") });
  return {
    nodeName: nodeA.name,
    zone: nodeAZone,
    families,
    nodeIPs: nodeA.addresses,
    detectors: each((family) => detectorOf(options, family)),
    nodePortAddresses: each((family) => nodePortAddressesOf(options, family)),
    nodeAddresses: each((family) => [LOOPBACK[family], nodeA.addresses[family], secondNodeAddress[family]].sort()),
    masqueradeAll: options.masqueradeAll,
    semantics,
    filter,
  };
}

function keyOf({ kind, metadata: { namespace = "", name } }: RawObject): string {
  return `${kind} ${namespace}/${name}`;
}

function toEnd<T>(slices: Generator<void, T, void>): T {
  for (;;) {
    const { done, value } = slices.next();
    if (done === true) return value;
  }
}
