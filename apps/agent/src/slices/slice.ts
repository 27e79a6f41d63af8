import {
  IP_FAMILIES,
  type IPFamily,
  isPort,
  itemsOf,
  objectAt,
  objectsAt,
  protocolOf,
  SLICES_MANAGER,
  textAt,
  valueAt,
} from "@fairlead/base";
import { labelsIn } from "./decode-pod.ts";
import type { Endpoint, SlicePort } from "./endpoints.ts";
import type { NetworkService } from "./service.ts";

const MANAGED_BY_LABEL = "endpointslice.kubernetes.io/managed-by";
const SERVICE_NAME_LABEL = "kubernetes.io/service-name";
/** Labels of a Service that mean something else on a slice. */
const NOT_COPIED = new Set([MANAGED_BY_LABEL, SERVICE_NAME_LABEL, "service.kubernetes.io/headless"]);

/** What is written of a slice. */
export interface SliceContent {
  readonly family: IPFamily;
  readonly labels: Readonly<Record<string, string>>;
  readonly ports: readonly SlicePort[];
  readonly endpoints: readonly Endpoint[];
}

/** A slice of ours that the cluster has. */
export interface OwnSlice extends SliceContent {
  readonly namespace: string;
  readonly name: string;
  readonly serviceName: string;
  /** With which it is written: another writer's change is never overwritten unread. */
  readonly resourceVersion: string;
}

/** The labels of a Service's slices: the Service's own, as upstream's controller copies them, and what they are. */
export function sliceLabels({ labels, name }: NetworkService): Readonly<Record<string, string>> {
  const copied = Object.entries(labels).filter(([key]) => !NOT_COPIED.has(key));
  const all = [...copied, [MANAGED_BY_LABEL, SLICES_MANAGER] as const, [SERVICE_NAME_LABEL, name] as const];
  return Object.fromEntries(all.sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** An EndpointSlice as it is written. */
export interface SliceObject {
  readonly apiVersion: "discovery.k8s.io/v1";
  readonly kind: "EndpointSlice";
  readonly metadata: {
    readonly namespace: string;
    /** Of a new one. */
    readonly generateName?: string;
    /** Of one that is there. */
    readonly name?: string;
    readonly resourceVersion?: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly ownerReferences: readonly object[];
  };
  readonly addressType: IPFamily;
  readonly ports: readonly SlicePort[];
  readonly endpoints: readonly Endpoint[];
}

/** The object that is written; without a name the API server makes one. The Service's end is the slice's as well. */
export function sliceObject(service: NetworkService, content: SliceContent, over?: OwnSlice): SliceObject {
  const { namespace, name, uid } = service;
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      namespace,
      ...(over === undefined
        ? { generateName: `${name.slice(0, 57)}-` }
        : { name: over.name, resourceVersion: over.resourceVersion }),
      labels: content.labels,
      // With blockOwnerDeletion some clusters ask for a right to all Services (OwnerReferencesPermissionEnforcement).
      ownerReferences: [{ apiVersion: "v1", kind: "Service", name, uid, controller: true }],
    },
    addressType: content.family,
    ports: content.ports,
    endpoints: content.endpoints,
  };
}

/**
 * Reads a discovery.k8s.io/v1 EndpointSlice. Never throws.
 *
 * @returns undefined for one that is not ours
 */
export function decodeOwnSlice(raw: unknown): OwnSlice | undefined {
  const metadata = objectAt(raw, "metadata");
  const labels = labelsIn(metadata);
  const [namespace, name] = [textAt(metadata, "namespace"), textAt(metadata, "name")];
  const family = IP_FAMILIES.find((one) => one === valueAt(raw, "addressType"));
  const serviceName = labels[SERVICE_NAME_LABEL];
  if (labels[MANAGED_BY_LABEL] !== SLICES_MANAGER || serviceName === undefined) return undefined;
  if (namespace === undefined || name === undefined || family === undefined) return undefined;
  return {
    namespace,
    name,
    serviceName,
    resourceVersion: textAt(metadata, "resourceVersion") ?? "",
    family,
    labels: Object.fromEntries(Object.entries(labels).sort(([one], [other]) => (one < other ? -1 : 1))),
    ports: objectsAt(raw, "ports").flatMap(portIn),
    endpoints: objectsAt(raw, "endpoints").flatMap(endpointIn),
  };
}

function portIn(item: Readonly<Record<string, unknown>>): readonly SlicePort[] {
  const [protocol, port] = [protocolOf(item["protocol"]), item["port"]];
  return protocol === undefined || !isPort(port) ? [] : [{ name: textAt(item, "name") ?? "", protocol, port }];
}

/** In the order of fields in which it is written, so that equal ones have one text. */
function endpointIn(item: Readonly<Record<string, unknown>>): readonly Endpoint[] {
  const address = itemsOf(item["addresses"])[0];
  if (typeof address !== "string") return [];
  const conditions = objectAt(item, "conditions");
  const target = objectAt(item, "targetRef");
  const [nodeName, zone] = [textAt(item, "nodeName"), textAt(item, "zone")];
  const [forZones, forNodes] = [namesAt(item, "forZones"), namesAt(item, "forNodes")];
  const hints = { ...(forZones.length > 0 && { forZones }), ...(forNodes.length > 0 && { forNodes }) };
  return [
    {
      addresses: [address],
      conditions: {
        ready: conditions["ready"] === true,
        serving: conditions["serving"] === true,
        terminating: conditions["terminating"] === true,
      },
      targetRef: {
        kind: "Pod",
        namespace: textAt(target, "namespace") ?? "",
        name: textAt(target, "name") ?? "",
        uid: textAt(target, "uid") ?? "",
      },
      ...(nodeName !== undefined && { nodeName }),
      ...(zone !== undefined && { zone }),
      ...(Object.keys(hints).length > 0 && { hints }),
    },
  ];
}

function namesAt(item: unknown, hint: "forZones" | "forNodes"): readonly { readonly name: string }[] {
  return objectsAt(objectAt(item, "hints"), hint).flatMap((one) => {
    const name = textAt(one, "name");
    return name === undefined ? [] : [{ name }];
  });
}
