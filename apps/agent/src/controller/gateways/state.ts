/** All objects that Gateways are made of, and which of them are to be looked at after a change. */

import { createHash } from "node:crypto";
import { NETWORKS_MANAGER, objectAt, textAt, valueAt } from "@fairlead/base";
import { Index, type Key, Replaced, SLICE_MANAGER_LABEL, textsIn, versionOf } from "../requests.ts";
import {
  decodeClass,
  decodeGateway,
  decodeGrant,
  decodeRoute,
  decodeService,
  decodeSlice,
  GATEWAYS_MANAGER,
  type Gateway,
  type GatewayClass,
  type GatewayService,
  type ReferenceGrant,
  type Route,
  type RouteKind,
  type SourceSlice,
} from "./objects.ts";
import type { World } from "./routes.ts";
import { serviceName } from "./service.ts";
import { type DesiredSlice, WEIGHT, WEIGHT_REFUSED } from "./shares.ts";

/** What has a status of ours. */
export type Kind = "GatewayClass" | "Gateway" | RouteKind;
/** What is followed. */
export type Followed = Kind | "EndpointSlice" | "Namespace" | "ReferenceGrant" | "Service";
/** An object whose status, or what it leads to, may be other than it is to be. */
export type Work = `${Kind} ${Key}`;

function workOf(kind: Kind, key: Key): Work {
  return `${kind} ${key}`;
}

/** A slice of a Gateway's Service that the cluster has. */
export interface OwnSlice {
  readonly name: string;
  readonly service: Key;
  readonly resourceVersion: string;
  /** Of all that is written. */
  readonly fingerprint: string;
}

/** What of a slice is compared: two with the same fingerprint are alike. @param owner metadata.uid of the Service */
export function fingerprint(
  owner: string,
  { family, annotations, ports, endpoints }: Omit<DesiredSlice, "name" | "service">,
) {
  const said = [annotations[WEIGHT], annotations[WEIGHT_REFUSED]];
  const listed = ports.map(({ name, protocol, port }) => [name, protocol, port]);
  return createHash("sha256")
    .update(JSON.stringify([owner, family, said, listed, endpoints]))
    .digest("base64");
}

export class GatewayState implements World {
  readonly #classes = new Map<string, GatewayClass>();
  readonly #gateways = new Map<Key, Gateway>();
  readonly #routes = new Map<string, Route>();
  readonly #namespaces = new Map<string, Readonly<Record<string, string>>>();
  readonly #grants = new Index<string, ReferenceGrant>();
  readonly #services = new Map<Key, GatewayService>();
  readonly #sources = new Index<Key, SourceSlice>();
  readonly #ownSlices = new Index<Key, OwnSlice>();
  /** By the uid of the Gateway. */
  readonly #byOwner = new Index<string, GatewayService>();
  readonly #refusals = new Map<Key, string>();
  /** Routes by the Gateways that they name, and by the Services that they lead to. */
  readonly #byParent = new Index<Key, Route>();
  readonly #byBackend = new Index<Key, Route>();
  /** Gateways by the names of their Services. */
  readonly #byService = new Map<Key, Set<Key>>();
  readonly #replaced = new Replaced<string>();
  readonly #dirty = new Set<Work>();

  get dirty(): ReadonlySet<Work> {
    return this.#dirty;
  }

  again(work: Work): void {
    this.#dirty.add(work);
  }

  done(work: Work): void {
    this.#dirty.delete(work);
  }

  /** A process that begins to write looks at all: what another one wrote, or left undone, is not known. */
  allAgain(): void {
    for (const name of this.#classes.keys()) this.#dirty.add(workOf("GatewayClass", `/${name}`));
    for (const key of this.#gateways.keys()) this.#dirty.add(workOf("Gateway", key));
    for (const route of this.#routes.values()) this.#dirtyRoute(route);
  }

  class(name: string): GatewayClass | undefined {
    return this.#classes.get(name);
  }

  gateway(key: Key): Gateway | undefined {
    return this.#gateways.get(key);
  }

  route(kind: RouteKind, key: Key): Route | undefined {
    return this.#routes.get(`${kind} ${key}`);
  }

  routesOf(gateway: Key): readonly Route[] {
    return this.#byParent.of(gateway);
  }

  namespaceLabels(namespace: string): Readonly<Record<string, string>> | undefined {
    return this.#namespaces.get(namespace);
  }

  grantsIn(namespace: string): readonly ReferenceGrant[] {
    return this.#grants.of(namespace);
  }

  service(key: Key): GatewayService | undefined {
    return this.#services.get(key);
  }

  slicesOf(service: Key): readonly SourceSlice[] {
    return [...this.#sources.of(service)].sort((one, other) => (one.name < other.name ? -1 : 1));
  }

  ownSlicesOf(service: Key): readonly OwnSlice[] {
    return this.#ownSlices.of(service);
  }

  /** Services with our label, in a Gateway's namespace, that it owns. */
  ownServicesOf({ namespace, uid }: Gateway): readonly GatewayService[] {
    return this.#byOwner.of(uid).filter((one) => one.namespace === namespace);
  }

  refusal(gateway: Key): string | undefined {
    return this.#refusals.get(gateway);
  }

  setRefusal(gateway: Key, message: string | undefined): void {
    if (message === undefined) this.#refusals.delete(gateway);
    else this.#refusals.set(gateway, message);
  }

  /** What the watch brings, which is behind own writes. @param raw undefined: it is gone */
  set(kind: Followed, key: Key, raw: unknown): void {
    const version = raw === undefined ? undefined : versionOf(raw);
    if (!this.#replaced.isOld(`${kind} ${key}`, version)) this.#set[kind](key, raw);
  }

  /**
   * What the API server answered to an own write, before the watch brings it.
   *
   * @param by what it was written for, which is not looked at again because of it
   * @param over the version that was written over; "": none
   */
  wrote(by: Work, kind: Kind | "EndpointSlice" | "Service", key: Key, over: string, raw: unknown): void {
    // What the watch has brought in the meantime is later.
    if (this.#version(kind, key) !== over) return;
    if (over !== "" && raw !== undefined) this.#replaced.add(`${kind} ${key}`, over);
    const hasChanged = this.#dirty.has(by);
    this.#set[kind](key, raw);
    if (!hasChanged) this.#dirty.delete(by);
  }

  /** Each is given undefined where the object is gone. */
  readonly #set: Readonly<Record<Followed, (key: Key, raw: unknown) => void>> = {
    GatewayClass: (key, raw) => this.#setClass(key, raw),
    Gateway: (key, raw) => this.#setGateway(key, raw),
    TCPRoute: (key, raw) => this.#setRoute("TCPRoute", key, raw),
    UDPRoute: (key, raw) => this.#setRoute("UDPRoute", key, raw),
    ReferenceGrant: (key, raw) => this.#setGrant(key, raw),
    Namespace: (key, raw) => this.#setNamespace(key, raw),
    Service: (key, raw) => this.#setService(key, raw),
    EndpointSlice: (key, raw) => this.#setSlice(key, raw),
  };

  #setClass(key: Key, raw: unknown): void {
    const name = key.slice(1);
    const [old, now] = [this.#classes.get(name), raw === undefined ? undefined : decodeClass(raw)];
    if (!put(this.#classes, name, now)) return;
    this.#dirty.add(workOf("GatewayClass", key));
    const concerns = (one: GatewayClass | undefined) =>
      one && JSON.stringify([one.isOurs, one.hasParameters, one.addresses]);
    if (concerns(old) === concerns(now)) return;
    for (const [gateway, { className }] of this.#gateways) if (className === name) this.#dirtyGateway(gateway, true);
  }

  #setGateway(key: Key, raw: unknown): void {
    const [old, now] = [this.#gateways.get(key), raw === undefined ? undefined : decodeGateway(raw)];
    if (!put(this.#gateways, key, now)) return;
    for (const [one, has] of [
      [old, false],
      [now, true],
    ] as const) {
      if (one === undefined) continue;
      const service: Key = `${one.namespace}/${serviceName(one)}`;
      const named = this.#byService.get(service) ?? new Set();
      if (has) this.#byService.set(service, named.add(key));
      else named.delete(key);
      if (named.size === 0) this.#byService.delete(service);
    }
    if (now === undefined) this.#refusals.delete(key);
    // A status is no news for routes.
    this.#dirtyGateway(key, old?.generation !== now?.generation || old?.uid !== now?.uid);
  }

  #setRoute(kind: RouteKind, key: Key, raw: unknown): void {
    const id = `${kind} ${key}`;
    const [old, now] = [this.#routes.get(id), raw === undefined ? undefined : decodeRoute(kind, raw)];
    if (!put(this.#routes, id, now)) return;
    this.#byParent.set(id, now, ({ parents }) => parents.map(({ gateway }) => gateway));
    this.#byBackend.set(id, now, ({ backends }) => backends.map(({ namespace, name }): Key => `${namespace}/${name}`));
    this.#dirty.add(workOf(kind, key));
    if (old?.generation === now?.generation && old?.uid === now?.uid) return;
    for (const one of [old, now]) for (const { gateway } of one?.parents ?? []) this.#dirtyGateway(gateway, false);
  }

  #setNamespace(key: Key, raw: unknown): void {
    const labels = raw === undefined ? undefined : textsIn(valueAt(raw, "metadata", "labels"));
    if (!put(this.#namespaces, key.slice(1), labels)) return;
    for (const [gateway, { listeners }] of this.#gateways)
      if (listeners.some(({ from }) => from === "Selector")) this.#dirtyGateway(gateway, true);
  }

  #setGrant(key: Key, raw: unknown): void {
    const [namespace] = key.split("/") as [string];
    this.#grants.set(key, raw === undefined ? undefined : decodeGrant(raw), () => [namespace]);
    for (const route of this.#routes.values())
      if (route.backends.some((one) => one.namespace === namespace && namespace !== route.namespace))
        this.#dirtyRoute(route);
  }

  #setService(key: Key, raw: unknown): void {
    const service = raw === undefined ? undefined : decodeService(raw);
    if (!put(this.#services, key, service)) return;
    this.#byOwner.set(key, service, ({ own }) => (own === undefined ? [] : [own.owner]));
    for (const gateway of this.#byService.get(key) ?? []) this.#dirtyGateway(gateway, false);
    for (const route of this.#byBackend.of(key)) this.#dirtyRoute(route);
  }

  #setSlice(key: Key, raw: unknown): void {
    const slice = raw === undefined ? undefined : decodeSlice(raw);
    const manager = valueAt(raw, "metadata", "labels", SLICE_MANAGER_LABEL);
    const own = slice && manager === GATEWAYS_MANAGER ? ownSliceIn(raw, slice) : undefined;
    // The watch brings what was written as well.
    if (own !== undefined && JSON.stringify(own) === JSON.stringify(this.#ownSlices.get(key))) return;
    // Those of secondary networks are for the agent that has their Service.
    const source = manager === GATEWAYS_MANAGER || manager === NETWORKS_MANAGER ? undefined : slice;
    const gatewaysOf = (service: Key) => this.#byService.get(service) ?? [];
    for (const service of this.#ownSlices.set(key, own, ({ service: of }) => [of]))
      for (const gateway of gatewaysOf(service)) this.#dirtyGateway(gateway, false);
    for (const service of this.#sources.set(key, source, ({ service: of }) => [of]))
      for (const route of this.#byBackend.of(service))
        for (const { gateway } of route.parents) this.#dirtyGateway(gateway, false);
  }

  #version(kind: Kind | "EndpointSlice" | "Service", key: Key): string {
    const found = {
      GatewayClass: this.#classes.get(key.slice(1)),
      Gateway: this.#gateways.get(key),
      TCPRoute: this.#routes.get(`TCPRoute ${key}`),
      UDPRoute: this.#routes.get(`UDPRoute ${key}`),
      Service: this.#services.get(key),
      EndpointSlice: this.#ownSlices.get(key),
    };
    return found[kind]?.resourceVersion ?? "";
  }

  #dirtyGateway(key: Key, withRoutes: boolean): void {
    this.#dirty.add(workOf("Gateway", key));
    if (withRoutes)
      for (const route of this.#byParent.of(key))
        this.#dirty.add(workOf(route.kind, `${route.namespace}/${route.name}`));
  }

  #dirtyRoute({ kind, namespace, name, parents }: Route): void {
    this.#dirty.add(workOf(kind, `${namespace}/${name}`));
    for (const { gateway } of parents) this.#dirtyGateway(gateway, false);
  }
}

/** @returns whether it differs from what was there */
function put<K, T>(map: Map<K, T>, key: K, now: T | undefined): boolean {
  if (JSON.stringify(map.get(key)) === JSON.stringify(now)) return false;
  if (now === undefined) map.delete(key);
  else map.set(key, now);
  return true;
}

function ownSliceIn(raw: unknown, { name, service, family, ports, endpoints }: SourceSlice): OwnSlice {
  const metadata = objectAt(raw, "metadata");
  const [owner] = Array.isArray(metadata["ownerReferences"]) ? metadata["ownerReferences"] : [];
  const content = { family, annotations: textsIn(metadata["annotations"]), ports, endpoints: [...endpoints.values()] };
  return {
    name,
    service,
    resourceVersion: versionOf(raw),
    fingerprint: fingerprint(textAt(owner, "uid") ?? "", content),
  };
}
