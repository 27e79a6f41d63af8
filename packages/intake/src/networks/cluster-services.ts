import type { ClusterView, ServiceKey } from "@fairlead/core";
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

  keys(): Iterable<ServiceKey> {
    return this.#state.keys();
  }

  within(cidr: string): ReadonlySet<ServiceKey> {
    return this.#index.within(cidr);
  }

  *inNamespace(namespace: string): Generator<ServiceKey, void> {
    for (const key of this.#state.keys()) if (key.startsWith(`${namespace}/`)) yield key;
  }

  /** The addresses of all its endpoints, ready or not. */
  addresses(key: ServiceKey): readonly string[] {
    return [...new Set(this.#addresses(key))].sort();
  }

  *#addresses(key: ServiceKey): Generator<string, void> {
    for (const { endpoints } of this.#state.slices(key)) for (const { address } of endpoints) yield address;
  }
}
