import type { IPFamily, Service, ServiceKey } from "@fairlead/core";

/** What the decisions ask of the services that there are. */
export interface ServicesView {
  /** How many there are. */
  readonly size: number;
  /** Those with an endpoint's address in the CIDR. */
  within(cidr: string): ReadonlySet<ServiceKey>;
  /** Those of a namespace. */
  inNamespace(namespace: string): Iterable<ServiceKey>;
  /** Undefined: there is no such service. */
  service(key: ServiceKey): Service | undefined;
  /** The addresses of all its endpoints in a family, ready or not. */
  addresses(key: ServiceKey, family: IPFamily): readonly string[];
}
