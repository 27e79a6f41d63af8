/** The job of Gateways: what it follows, and what it does while this process leads. */

import { type Clock, GATEWAY_GROUP } from "@fairlead/base";
import type { ObjectRequest, OtherResource, OtherState, OtherSubscription } from "@fairlead/watch";
import { Reconciler } from "../reconciler.ts";
import { type Send, SLICES } from "../requests.ts";
import { type Followed, GatewayState, type Kind, type Work } from "./state.ts";
import { PLURALS, reconcile, type Subject } from "./writes.ts";

interface GatewayJobOptions {
  readonly send: Send;
  readonly clock: Clock;
  readonly onProblem: (subject: Subject, reason: string, message: string) => void;
  readonly onError: (work: Work, error: unknown, retryMs: number) => void;
  /** The first complete list of a resource is in the state. */
  readonly onSynced: (resource: Followed) => void;
  readonly onState: (resource: Followed, state: OtherState) => void;
}

/** Resources without which it is not known what is to be written. */
export const GATEWAY_RESOURCES: readonly Followed[] = [
  "GatewayClass",
  "Gateway",
  "TCPRoute",
  "UDPRoute",
  "ReferenceGrant",
  "Namespace",
  "Service",
  "EndpointSlice",
];

export class GatewayJob {
  readonly #options: GatewayJobOptions;
  readonly #state = new GatewayState();
  #changed = () => {};

  constructor(options: GatewayJobOptions) {
    this.#options = options;
  }

  /** The state keeps what it reads of an object, and no raw one: a cluster's slices are many. */
  get subscriptions(): readonly OtherSubscription[] {
    const { onSynced, onState } = this.#options;
    return GATEWAY_RESOURCES.map((kind) => ({
      resource: resourceOf(kind),
      decode: (raw) => raw,
      onState: (is) => onState(kind, is),
      onChange: (change) => {
        if (change.type === "synced") onSynced(kind);
        else this.#state.set(kind, change.key, change.type === "upsert" ? change.object : undefined);
        this.#changed();
      },
    }));
  }

  /** Until the signal aborts, or this process may no longer write. The first complete lists have to be there. */
  async lead(signal: AbortSignal, mayWrite: () => boolean): Promise<void> {
    const { send, clock, onProblem, onError } = this.#options;
    const state = this.#state;
    const writing = {
      state,
      send: (request: ObjectRequest) => {
        if (signal.aborted || !mayWrite()) throw new Error("another process may lead now; nothing is written");
        return send(request);
      },
      now: () => clock.now(),
      onProblem,
    };
    const loop = new Reconciler<Work>({
      dirty: state.dirty,
      again: (work) => state.again(work),
      reconcile: (work) => reconcile(work, writing),
      clock,
      mayWrite,
      onError,
    });
    this.#changed = () => loop.changed();
    state.allAgain();
    await loop.run(signal);
  }
}

function resourceOf(kind: Followed): OtherResource {
  const ofGateways = (plural: string): OtherResource => ({
    group: GATEWAY_GROUP,
    version: "v1",
    plural,
    kind,
    namespaced: true,
  });
  const ofCore = (plural: string): OtherResource => ({ group: "", version: "v1", plural, kind, namespaced: true });
  switch (kind) {
    case "GatewayClass":
      return { ...ofGateways(PLURALS[kind]), namespaced: false };
    case "Gateway":
    case "TCPRoute":
    case "UDPRoute":
      return ofGateways(PLURALS[kind satisfies Kind]);
    case "ReferenceGrant":
      return ofGateways("referencegrants");
    case "Namespace":
      return { ...ofCore("namespaces"), namespaced: false };
    case "Service":
      return ofCore("services");
    case "EndpointSlice":
      return SLICES;
  }
}
