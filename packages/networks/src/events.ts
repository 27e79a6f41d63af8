/** What objects of the cluster say, one event at a time. */
import type { Clock } from "@fairlead/base";
import { API_SERVER, type NeutralAddresses } from "@fairlead/endpoint-filter";
import type { ConsentFacts } from "./consent.ts";
import type { ResourceState, SourceFacts } from "./facts.ts";
import type { Namespaces } from "./rules.ts";

/** What is known from objects, and kept up with them. */
export interface KnownFacts {
  /** @throws RangeError when there is no such source */
  readonly source: (id: string) => SourceFacts;
  readonly consent: ConsentFacts;
  readonly namespaces: Namespaces;
  readonly nodes: NodeAddresses;
}

/** Takes what a cluster's objects say, one event at a time and in any order; the next decision takes it in. */
export class ObjectEvents {
  readonly #facts: KnownFacts;
  readonly #clock: Pick<Clock, "now" | "monotonic">;
  #changedAt: number | undefined;
  #serviceCIDRs: readonly string[] = [];

  constructor(facts: KnownFacts, clock: Pick<Clock, "now" | "monotonic">) {
    this.#facts = facts;
    this.#clock = clock;
  }

  /** Monotonic milliseconds of the first event since the last `take`; undefined: there was none. */
  get changedAt(): number | undefined {
    return this.#changedAt;
  }

  /** Canonical. */
  get serviceCIDRs(): readonly string[] {
    return this.#serviceCIDRs;
  }

  /** A decision takes in all events until now. */
  take(): void {
    this.#changedAt = undefined;
  }

  /**
   * An object is so now.
   *
   * @param resource its place in the source's `resources`
   * @param object how people call it: `Subnet/ovn-default`
   * @param raw straight from JSON, untrusted
   * @returns what is wrong with it and was not reported before
   */
  upsert(source: string, resource: number, object: string, raw: unknown): readonly string[] {
    this.#changed();
    return this.#facts.source(source).upsert(resource, object, raw);
  }

  delete(source: string, resource: number, object: string): void {
    this.#changed();
    this.#facts.source(source).delete(resource, object);
  }

  /** `listed` comes after the first list's objects, and again after what interrupted it. */
  setState(source: string, resource: number, state: Exclude<ResourceState, "waiting">): void {
    this.#changed();
    this.#facts.source(source).setState(resource, state);
  }

  /** @param cidrs canonical, all of them */
  setServiceCIDRs(cidrs: readonly string[]): void {
    this.#serviceCIDRs = cidrs;
    this.#changed();
  }

  /** @param raw a Namespace, straight from JSON and untrusted; undefined: it is gone */
  setNamespace(namespace: string, raw: unknown): void {
    if (this.#facts.namespaces.set(namespace, raw)) this.#changed();
  }

  /** `listed` comes after the first list's namespaces, and again after what interrupted it. */
  setNamespacesState(state: Exclude<ResourceState, "waiting">): void {
    this.#facts.namespaces.setState(state);
    this.#changed();
  }

  /** @param raw a Vpc, straight from JSON and untrusted; undefined: it is gone */
  setVPC(object: string, raw: unknown): void {
    if (this.#facts.namespaces.setVPC(object, raw)) this.#changed();
  }

  setVPCsState(state: Exclude<ResourceState, "waiting">): void {
    this.#facts.namespaces.setVPCsState(state);
    this.#changed();
  }

  /** @param addresses canonical; none: the node is gone */
  setNode(node: string, addresses: readonly string[]): void {
    if (this.#facts.nodes.set(node, addresses)) this.#changed();
  }

  /**
   * @param raw the ConfigMap `fairlead-networks`, straight from JSON and untrusted; undefined: it is gone
   * @returns what is wrong with it and was not reported before
   */
  setConsent(raw: unknown): readonly string[] {
    this.#changed();
    if (raw !== undefined) return this.#facts.consent.set(raw);
    this.#facts.consent.delete(this.#clock.now());
    return [];
  }

  /** `listed` comes after the object, if there is one, and again after what interrupted it. */
  setConsentState(state: Exclude<ResourceState, "waiting">): void {
    this.#facts.consent.setState(state, this.#clock.now());
    this.#changed();
  }

  /**
   * Where the API server is, as the endpoints of default/kubernetes say: such an address belongs to no network.
   *
   * @param addresses canonical
   */
  setAPIServer(addresses: readonly string[]): void {
    if (this.#facts.nodes.set(API_SERVER, addresses)) this.#changed();
  }

  #changed(): void {
    this.#changedAt ??= this.#clock.monotonic();
  }
}

/** The addresses of all nodes and of the API server: endpoints at them decide nothing. */
export class NodeAddresses {
  readonly #nodes = new Map<string, readonly string[]>();
  #all: NeutralAddresses | undefined;

  /**
   * @param node its name, or `API_SERVER`
   * @returns whether anything changed
   */
  set(node: string, given: readonly string[]): boolean {
    const addresses = given.slice(0, MOST_ADDRESSES);
    if (this.#nodes.get(node)?.join() === addresses.join()) return false;
    if (addresses.length === 0) this.#nodes.delete(node);
    else this.#nodes.set(node, addresses);
    this.#all = undefined;
    return true;
  }

  /** The same one while nothing changes. */
  get all(): NeutralAddresses {
    this.#all ??= byAddress(this.#nodes);
    return this.#all;
  }
}

/** A Node's credential writes its addresses, so they count for that node only; the API server writes its own. */
function byAddress(nodes: ReadonlyMap<string, readonly string[]>): NeutralAddresses {
  const found = new Map<string, Set<string>>();
  for (const [node, addresses] of nodes) {
    for (const address of addresses) found.set(address, (found.get(address) ?? new Set()).add(node));
  }
  return new Map(Array.from(found, ([address, names]) => [address, names.has(API_SERVER) ? "any" : names]));
}

/** Addresses of one node: its credential writes them, and each may cost rules. */
const MOST_ADDRESSES = 16;
