import type { IPFamily, Protocol } from "@fairlead/core";
import type { RawObject } from "./raw.ts";

export interface EndpointFields {
  readonly address: string;
  readonly nodeName?: string;
  /** Default true. */
  readonly ready?: boolean;
  /** Default: as ready. */
  readonly serving?: boolean;
  /** Default false. */
  readonly terminating?: boolean;
  readonly zoneHints?: readonly string[];
  readonly nodeHints?: readonly string[];
}

export interface SlicePortFields {
  /** Default "". */
  readonly name?: string;
  readonly port: number;
  /** Default TCP. */
  readonly protocol?: Protocol;
}

export interface EndpointSliceFields {
  /** Default "default". */
  readonly namespace?: string;
  readonly service: string;
  readonly family: IPFamily;
  readonly ports: readonly SlicePortFields[];
  readonly endpoints: readonly EndpointFields[];
}

/** A discovery.k8s.io/v1 EndpointSlice as the API server stores it. */
export function endpointSlice(name: string, fields: EndpointSliceFields): RawObject {
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      name,
      namespace: fields.namespace ?? "default",
      labels: { "kubernetes.io/service-name": fields.service },
    },
    addressType: fields.family,
    ports: fields.ports.map(({ name = "", port, protocol = "TCP" }) => ({ name, port, protocol })),
    endpoints: fields.endpoints.map(endpoint),
  };
}

function endpoint(fields: EndpointFields) {
  const { address, nodeName, ready = true, serving = ready, terminating = false } = fields;
  return {
    addresses: [address],
    conditions: { ready, serving, terminating },
    ...(nodeName !== undefined && { nodeName }),
    ...((fields.zoneHints ?? fields.nodeHints) && { hints: hints(fields) }),
  };
}

function hints({ zoneHints, nodeHints }: EndpointFields) {
  const named = (names: readonly string[]) => names.map((name) => ({ name }));
  return { ...(zoneHints && { forZones: named(zoneHints) }), ...(nodeHints && { forNodes: named(nodeHints) }) };
}
