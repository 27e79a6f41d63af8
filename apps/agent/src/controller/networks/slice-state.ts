/** All Services, pods and own slices, and which writes a Service needs. */

import { inAnyOf } from "@fairlead/base";
import type { Key } from "../requests.ts";
import {
  decodeNetworkService,
  decodePod,
  type NetworkService,
  type Pod,
  type ProblemReason,
  SERVICE_NETWORK,
  type SliceProblem,
} from "./decode.ts";
import { type EndpointFacts, endpointSets } from "./endpoints.ts";
import { decodeOwnSlice, OwnSlices, planSlices, type SliceWrites, sliceLabels } from "./slice.ts";

export interface ServicePlan extends SliceWrites {
  readonly key: Key;
  /** Undefined: it is gone, or does not ask for a network. */
  readonly service: NetworkService | undefined;
  readonly problems: readonly SliceProblem[];
}

/**
 * The objects that slices are made of, and which Services a change of them concerns. A change of a pod costs the
 * Services of its namespace, not the cluster's.
 */
export class SliceState {
  readonly #services = new Map<Key, NetworkService>();
  /** Services that cannot be read: their slices stay as they were. */
  readonly #refused = new Map<Key, SliceProblem>();
  readonly #servicesIn = new Map<string, Set<Key>>();
  readonly #podsIn = new Map<string, Map<string, Pod>>();
  readonly #slices = new OwnSlices();
  readonly #zones = new Map<string, string>();
  /** Undefined: the resource cannot be read, so that no network is said to be missing. */
  #networks: ReadonlySet<string> | undefined;
  #inServiceCIDR: EndpointFacts["inServiceCIDR"] = () => false;
  readonly #dirty = new Set<Key>();

  /** Services whose slices may be other than they are to be. */
  get dirty(): ReadonlySet<Key> {
    return this.#dirty;
  }

  /** A Service whose writes failed is planned again. */
  again(key: Key): void {
    this.#dirty.add(key);
  }

  /** Who begins to write plans all: what another process wrote, or left undone, is not known. */
  allAgain(): void {
    this.#allDirty();
    for (const key of this.#refused.keys()) this.#dirty.add(key);
    for (const key of this.#slices.services) this.#dirty.add(key);
  }

  /** @param raw undefined: it is gone */
  setService(key: Key, raw: unknown): void {
    const decoded = raw === undefined ? undefined : decodeNetworkService(raw);
    this.#services.delete(key);
    this.#refused.delete(key);
    const [namespace] = key.split("/") as [string];
    const here = this.#servicesIn.get(namespace) ?? new Set();
    if (decoded !== undefined && "service" in decoded) {
      this.#services.set(key, decoded.service);
      this.#servicesIn.set(namespace, here.add(key));
    } else {
      here.delete(key);
      if (decoded !== undefined) this.#refused.set(key, decoded.problem);
    }
    this.#dirty.add(key);
  }

  /** @param raw undefined: it is gone */
  setPod(key: Key, raw: unknown): void {
    const [namespace, name] = key.split("/") as [string, string];
    const pods = this.#podsIn.get(namespace) ?? new Map<string, Pod>();
    this.#podsIn.set(namespace, pods);
    const [old, now] = [pods.get(name), raw === undefined ? undefined : decodePod(raw)];
    if (JSON.stringify(old) === JSON.stringify(now)) return;
    if (now === undefined) pods.delete(name);
    else pods.set(name, now);
    if (pods.size === 0) this.#podsIn.delete(namespace);
    for (const service of this.#servicesIn.get(namespace) ?? []) {
      const selector = this.#services.get(service)?.selector;
      if (selector !== undefined && [old, now].some((pod) => isSelected(selector, pod))) this.#dirty.add(service);
    }
  }

  /** @param zone of the Node; undefined: it has none, or is gone */
  setZone(node: string, zone: string | undefined): void {
    if (this.#zones.get(node) === zone) return;
    if (zone === undefined) this.#zones.delete(node);
    else this.#zones.set(node, zone);
    this.#allDirty();
  }

  /** What the watch brings. @param raw undefined: it is gone */
  setSlice(key: Key, raw: unknown): void {
    this.#makeDirty(this.#slices.observed(key, sliceIn(raw)));
  }

  /**
   * What the API server answered to a write, before the watch brings it.
   *
   * @param over the version that was written over; undefined: none
   * @param raw undefined: there is none any longer
   */
  wroteSlice(key: Key, over: string | undefined, raw: unknown): void {
    this.#makeDirty(this.#slices.written(key, over, sliceIn(raw)));
  }

  #makeDirty(services: Iterable<Key>): void {
    for (const service of services) this.#dirty.add(service);
  }

  /** @param names `namespace/name` of all NetworkAttachmentDefinitions; undefined: they cannot be read */
  setNetworks(names: ReadonlySet<string> | undefined): void {
    this.#networks = names;
    this.#allDirty();
  }

  /** @throws RangeError when one is not a CIDR */
  setServiceCIDRs(cidrs: readonly string[]): void {
    this.#inServiceCIDR = inAnyOf(cidrs);
    this.#allDirty();
  }

  /**
   * What is to be written for a Service; it is no longer dirty.
   *
   * @param most endpoints of a slice
   */
  plan(key: Key, most: number): ServicePlan {
    this.#dirty.delete(key);
    const refused = this.#refused.get(key);
    if (refused !== undefined) return { key, service: undefined, ...NO_WRITES, problems: [refused] };
    const own = this.#slices.of(key);
    const service = this.#services.get(key);
    if (service === undefined) return { key, service, ...NO_WRITES, remove: own, problems: [] };
    const facts = { zoneOf: (node: string) => this.#zones.get(node), inServiceCIDR: this.#inServiceCIDR };
    const { sets, problems } = endpointSets(service, this.#selected(service), facts);
    const writes = planSlices(sets, sliceLabels(service), own, most);
    const create = service.terminating ? [] : writes.create;
    return { key, service, ...writes, create, problems: this.#problemsOf(service, problems) };
  }

  *#selected({ namespace, selector }: NetworkService): Generator<Pod> {
    for (const pod of this.#podsIn.get(namespace)?.values() ?? []) if (isSelected(selector, pod)) yield pod;
  }

  /** Where the network is not there, that says why no pod is attached to it. */
  #problemsOf({ network }: NetworkService, problems: readonly SliceProblem[]): readonly SliceProblem[] {
    if (this.#networks?.has(network) !== false) return summarized(problems);
    const missing: SliceProblem = {
      reason: "NetworkNotFound",
      message: `annotation ${SERVICE_NETWORK}: there is no NetworkAttachmentDefinition ${network}`,
    };
    return [missing, ...summarized(problems.filter(({ reason }) => reason !== "NoNetworkAddress"))];
  }

  #allDirty(): void {
    for (const key of this.#services.keys()) this.#dirty.add(key);
  }
}

const NO_WRITES: SliceWrites = { create: [], update: [], remove: [] };

function sliceIn(raw: unknown) {
  return raw === undefined ? undefined : decodeOwnSlice(raw);
}

function isSelected(selector: Readonly<Record<string, string>>, pod: Pod | undefined): boolean {
  if (pod === undefined) return false;
  return Object.entries(selector).every(([key, value]) => pod.labels[key] === value);
}

/** Pods that are named in one message. */
const NAMED = 3;

/** One problem for each reason, so that a thousand pods without a status are one Event. */
function summarized(problems: readonly SliceProblem[]): readonly SliceProblem[] {
  const byReason = new Map<ProblemReason, SliceProblem[]>();
  for (const problem of problems) {
    const alike = byReason.get(problem.reason) ?? [];
    byReason.set(problem.reason, alike);
    alike.push(problem);
  }
  return Array.from(byReason.values(), summary);
}

function summary(alike: readonly SliceProblem[]): SliceProblem {
  // In the order of names: the same pods are the same message, whatever order they came in.
  const [first, ...others] = [...alike].sort((one, other) => ((one.pod ?? "") < (other.pod ?? "") ? -1 : 1));
  if (first === undefined) throw new RangeError("a reason without a problem");
  const { reason, pod, message } = first;
  if (pod === undefined) return first;
  if (others.length === 0) return { reason, pod, message: `pod ${pod} is left out: it ${message}` };
  const named = others.slice(0, NAMED - 1).map((other) => other.pod);
  const more = others.length > named.length ? `, and ${others.length - named.length} more` : "";
  return { reason, pod, message: `pods ${[pod, ...named].join(", ")}${more} are left out: ${pod} ${message}` };
}
