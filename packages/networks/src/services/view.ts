import type { ServiceKey } from "@fairlead/core";

/** What the decisions ask of the services that there are. */
export interface ServicesView {
  /** All of them. */
  keys(): Iterable<ServiceKey>;
  /** Those with an endpoint's address in the CIDR. */
  within(cidr: string): ReadonlySet<ServiceKey>;
  /** Those of a namespace. */
  inNamespace(namespace: string): Iterable<ServiceKey>;
}
