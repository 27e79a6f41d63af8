/** Carries out what is planned: reads, compares, and writes what differs. */

import { isDeepStrictEqual } from "node:util";
import { GATEWAY_GROUP, isObject, parseJSON, type RawObject } from "@fairlead/base";
import {
  accepted,
  type Key,
  RefusedError,
  SERVICE_NAME_LABEL,
  type Send,
  SLICE_MANAGER_LABEL,
  sliceObject,
  sliceWriter,
  unlessMissing,
  versionOf,
} from "../requests.ts";
import { conditionsWith, newProblems } from "./conditions.ts";
import { GATEWAYS_MANAGER, type GatewayService, type Identity, type RouteKind } from "./objects.ts";
import { classFinding, type GatewayPlan, planGateway, SUPPORTED_FEATURES } from "./plan.ts";
import { routeParents } from "./routes.ts";
import { type DesiredService, differs, newService, serviceWith } from "./service.ts";
import type { DesiredSlice } from "./shares.ts";
import { fingerprint, type GatewayState, type Kind, type Work } from "./state.ts";

/** An object that has a problem: an Event names it. */
export interface Subject extends Pick<Identity, "namespace" | "name" | "uid"> {
  readonly apiVersion: string;
  readonly kind: Kind;
}

interface WritingOptions {
  readonly state: GatewayState;
  /** Rejects where this process may no longer write. */
  readonly send: Send;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Something is wrong with an object that was not before. */
  readonly onProblem: (subject: Subject, reason: string, message: string) => void;
}

/** Makes of an object what it is to be. @throws Error where a write failed: it is to be tried again */
export async function reconcile(work: Work, options: WritingOptions): Promise<void> {
  options.state.done(work);
  await new Reconciliation(work, options).run();
}

/** Of one object. */
class Reconciliation {
  readonly #options: WritingOptions;
  readonly #work: Work;
  readonly #kind: Kind;
  readonly #key: Key;

  constructor(work: Work, options: WritingOptions) {
    this.#options = options;
    this.#work = work;
    [this.#kind, this.#key] = work.split(" ") as [Kind, Key];
  }

  async run(): Promise<void> {
    if (this.#kind === "Gateway") await this.#gateway();
    else if (this.#kind === "GatewayClass") await this.#class();
    else await this.#route(this.#kind);
  }

  async #class(): Promise<void> {
    const found = this.#options.state.class(this.#key.slice(1));
    if (found?.isOurs !== true) return;
    const moment = { generation: found.generation, now: this.#now() };
    const status = {
      ...found.status,
      conditions: conditionsWith(found.status, [classFinding(found)], moment),
      supportedFeatures: SUPPORTED_FEATURES.map((name) => ({ name })),
    };
    await this.#writeStatus(found, found.status, status);
  }

  async #route(kind: RouteKind): Promise<void> {
    const { state } = this.#options;
    const route = state.route(kind, this.#key);
    if (route === undefined || route.terminating) return;
    const parents = routeParents(state, route, this.#now());
    await this.#writeStatus(route, { parents: route.status }, { parents });
  }

  async #gateway(): Promise<void> {
    const { state } = this.#options;
    const key = this.#key;
    const before = planGateway(state, key, this.#now());
    if (before === undefined) return this.#leave();
    const seen = () => [state.refusal(key), before.service && state.service(idOf(before.service))];
    const seenBefore = seen();
    const refusal = before.isTaken ? undefined : await this.#writeService(before);
    // The Service may have come into being, or may have been refused.
    const isOther = seen().some((one, at) => one !== seenBefore[at]);
    const { gateway, service, isTaken, slices, status } =
      (isOther ? planGateway(state, key, this.#now()) : undefined) ?? before;
    const there = service && !isTaken ? state.service(idOf(service)) : undefined;
    if (there !== undefined) await this.#writeSlices(there, slices);
    for (const old of state.ownServicesOf(gateway)) if (old.name !== service?.name) await this.#removeService(old);
    await this.#writeStatus(gateway, gateway.status, status);
    if (refusal !== undefined) throw refusal;
  }

  /** Another controller has the Gateway now. Where its class is gone, nothing is known, and all stays. */
  async #leave(): Promise<void> {
    const { state } = this.#options;
    const gateway = state.gateway(this.#key);
    if (gateway === undefined || state.class(gateway.className)?.isOurs !== false) return;
    for (const old of state.ownServicesOf(gateway)) await this.#removeService(old);
  }

  /** @returns why the API server does not take the Service as it is to be */
  async #writeService({ service, gateway }: GatewayPlan): Promise<RefusedError | undefined> {
    const { state, send } = this.#options;
    if (service === undefined) return undefined;
    const path = `/api/v1/namespaces/${encodeURIComponent(service.namespace)}/services`;
    const id = idOf(service);
    const there = state.service(id);
    try {
      if (there === undefined) {
        const object = newService(service, gateway);
        const stored = await accepted(send, { method: "POST", path, object });
        state.wrote(this.#work, "Service", id, "", stored);
      } else if (differs(there, service)) await this.#updateService(`${path}/${service.name}`, service);
      state.setRefusal(this.#key, undefined);
      return undefined;
    } catch (error) {
      if (!(error instanceof RefusedError) || !INPUT.has(error.status)) throw error;
      state.setRefusal(this.#key, error.said);
      return error;
    }
  }

  async #updateService(path: string, service: DesiredService): Promise<void> {
    const { state, send } = this.#options;
    const raw = await unlessMissing(send, { method: "GET", path });
    if (!isObject(raw)) return;
    const object = serviceWith(service, raw);
    if (isDeepStrictEqual(object, raw)) return;
    const stored = await accepted(send, { method: "PUT", path, object });
    state.wrote(this.#work, "Service", idOf(service), versionOf(raw), stored);
  }

  async #removeService({ namespace, name, resourceVersion, uid }: GatewayService): Promise<void> {
    const { state, send } = this.#options;
    const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/services/${encodeURIComponent(name)}`;
    // Another one of the same name is not meant.
    const object = { apiVersion: "v1", kind: "DeleteOptions", preconditions: { uid } };
    await unlessMissing(send, { method: "DELETE", path, object });
    state.wrote(this.#work, "Service", `${namespace}/${name}`, resourceVersion, undefined);
  }

  /** What comes is written before what goes: a listener does not lose its endpoints in between. */
  async #writeSlices({ namespace, name, uid }: GatewayService, slices: readonly DesiredSlice[]): Promise<void> {
    const { state, send } = this.#options;
    const writer = sliceWriter(send);
    const left = new Map(state.ownSlicesOf(`${namespace}/${name}`).map((slice) => [slice.name, slice]));
    for (const slice of slices) {
      const old = left.get(slice.name);
      left.delete(slice.name);
      if (old?.fingerprint === fingerprint(uid, slice)) continue;
      const object = sliceObjectOf(namespace, uid, slice, old?.resourceVersion);
      const stored = await (old === undefined ? writer.create(object) : writer.update(object));
      state.wrote(this.#work, "EndpointSlice", `${namespace}/${slice.name}`, old?.resourceVersion ?? "", stored);
    }
    for (const old of left.values()) {
      await writer.remove({ namespace, name: old.name });
      state.wrote(this.#work, "EndpointSlice", `${namespace}/${old.name}`, old.resourceVersion, undefined);
    }
  }

  async #writeStatus(
    { namespace, name, uid, resourceVersion }: Identity,
    before: RawObject,
    status: RawObject,
  ): Promise<void> {
    if (isDeepStrictEqual(before, status)) return;
    const { state, send } = this.#options;
    const kind = this.#kind;
    const within = namespace === "" ? "" : `/namespaces/${encodeURIComponent(namespace)}`;
    const path = `/apis/${GATEWAY_GROUP}/v1${within}/${PLURALS[kind]}/${encodeURIComponent(name)}/status`;
    const apiVersion = `${GATEWAY_GROUP}/v1`;
    const metadata = { ...(namespace !== "" && { namespace }), name, resourceVersion };
    const stored = await unlessMissing(send, { method: "PUT", path, object: { apiVersion, kind, metadata, status } });
    if (stored === undefined) return;
    state.wrote(this.#work, kind, this.#key, resourceVersion, stored);
    for (const { reason, message } of problemsIn(before, status))
      this.#options.onProblem({ apiVersion, kind, namespace, name, uid }, reason, message);
  }

  #now(): string {
    return `${new Date(this.#options.now()).toISOString().slice(0, 19)}Z`;
  }
}

export const PLURALS: Readonly<Record<Kind, string>> = {
  GatewayClass: "gatewayclasses",
  Gateway: "gateways",
  TCPRoute: "tcproutes",
  UDPRoute: "udproutes",
};

function idOf({ namespace, name }: DesiredService): Key {
  return `${namespace}/${name}`;
}

/** What the API server says of what a Gateway asks for; all else may be another the next time. */
const INPUT: ReadonlySet<number> = new Set([400, 403, 422]);

function sliceObjectOf(namespace: string, owner: string, slice: DesiredSlice, resourceVersion: string | undefined) {
  const { name, service, annotations, endpoints } = slice;
  const labels = { [SERVICE_NAME_LABEL]: service, [SLICE_MANAGER_LABEL]: GATEWAYS_MANAGER };
  const metadata = { namespace, name, ...(resourceVersion !== undefined && { resourceVersion }), labels, annotations };
  return sliceObject(metadata, { name: service, uid: owner }, { ...slice, endpoints: endpoints.map(parseJSON) });
}

/** Of a Gateway its own conditions, of a route those of all its parents. */
function problemsIn(before: RawObject, after: RawObject) {
  const holder = ({ conditions, parents }: RawObject) => ({
    conditions: [conditions, ...(Array.isArray(parents) ? parents.map((one) => Object(one)["conditions"]) : [])].flat(),
  });
  return newProblems(holder(before), holder(after));
}
