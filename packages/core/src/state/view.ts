import type { EndpointSlice, Service, ServiceKey } from "../objects.ts";

/** The objects that planning reads. */
export interface ClusterView {
  /** How many `keys` there are. */
  readonly size: number;
  /** Every service that has a Service or an EndpointSlice. */
  keys(): Iterable<ServiceKey>;
  /** The Service of a key; undefined where there are only slices, or nothing. */
  service(key: ServiceKey): Service | undefined;
  /** The service's slices of both families in the byte order of their names. */
  slices(key: ServiceKey): readonly EndpointSlice[];
}
