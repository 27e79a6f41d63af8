import type { ClusterView, IPFamily, Service, ServiceKey } from "@fairlead/core";
import { AddressIndex, type ServicesView } from "@fairlead/networks";

/** The services of a cluster state, as decisions about networks ask for them. */
export class ClusterServices implements ServicesView {
  readonly #state: ClusterView;
  readonly #index = new AddressIndex();

  constructor(state: ClusterView) {
    this.#state = state;
  }

  /** Looks again where the endpoints of these are; yields after each. */
  *refresh(services: Iterable<ServiceKey>): Generator<void, void> {
    for (const key of services) {
      this.#index.set(key, this.#addresses(key));
      yield;
    }
  }

  get size(): number {
    return this.#state.size;
  }

  within(cidr: string): ReadonlySet<ServiceKey> {
    return this.#index.within(cidr);
  }

  *inNamespace(namespace: string): Generator<ServiceKey, void> {
    for (const key of this.#state.keys()) if (key.startsWith(`${namespace}/`)) yield key;
  }

  service(key: ServiceKey): Service | undefined {
    return this.#state.service(key);
  }

  addresses(key: ServiceKey, family: IPFamily): readonly string[] {
    return [...this.#addresses(key, family)];
  }

  *#addresses(key: ServiceKey, only?: IPFamily): Generator<string, void> {
    for (const { family, endpoints } of this.#state.slices(key)) {
      if (only !== undefined && family !== only) continue;
      for (const { address } of endpoints) yield address;
    }
  }
}
