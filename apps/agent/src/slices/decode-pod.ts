import {
  isPort,
  itemsOf,
  numberOf,
  objectAt,
  objectsAt,
  protocolOf,
  type RawObject,
  stringOf,
  textAt,
  valueAt,
} from "@fairlead/base";
import { NETWORK_STATUS, readNetworkStatus } from "./network-status.ts";
import type { NamedPort, Pod } from "./pod.ts";

/**
 * Reads a core/v1 Pod. Never throws.
 *
 * @returns undefined for a pod that is no endpoint on a secondary network: in the host's network, ended (`Succeeded`,
 *   `Failed`), without a name, or without an address of its first interface. Upstream's controller leaves out ended
 *   pods and those without an address as well (staging/src/k8s.io/endpointslice, ShouldPodBeInEndpoints). Multus writes
 *   its status before the pod has an address: a pod that starts is not reported as one without a status.
 */
export function decodePod(raw: unknown): Pod | undefined {
  const [metadata, spec, status] = [objectAt(raw, "metadata"), objectAt(raw, "spec"), objectAt(raw, "status")];
  const [namespace, name] = [textAt(metadata, "namespace"), textAt(metadata, "name")];
  const phase = status["phase"];
  if (namespace === undefined || name === undefined || spec["hostNetwork"] === true) return undefined;
  if (phase === "Succeeded" || phase === "Failed" || itemsOf(status["podIPs"]).length === 0) return undefined;
  const nodeName = textAt(spec, "nodeName");
  const networks = stringOf(valueAt(metadata, "annotations", NETWORK_STATUS));
  return {
    namespace,
    name,
    uid: textAt(metadata, "uid") ?? "",
    labels: labelsIn(metadata),
    ready: itemsOf(status["conditions"]).some(isReady),
    terminating: textAt(metadata, "deletionTimestamp") !== undefined,
    namedPorts: [...objectsAt(spec, "containers"), ...sidecars(spec)].flatMap(portsOf),
    ...(nodeName !== undefined && { nodeName }),
    ...(networks !== undefined && { networks: readNetworkStatus(networks) }),
  };
}

/** Init containers that go on running (KEP-753) serve as containers do. */
function sidecars(spec: RawObject): readonly RawObject[] {
  return objectsAt(spec, "initContainers").filter(({ restartPolicy }) => restartPolicy === "Always");
}

function isReady(condition: unknown): boolean {
  return valueAt(condition, "type") === "Ready" && valueAt(condition, "status") === "True";
}

/** Shared with Services: both have labels that are text to text. */
export function labelsIn(metadata: RawObject): Readonly<Record<string, string>> {
  return textsIn(metadata["labels"]);
}

export function textsIn(value: unknown): Readonly<Record<string, string>> {
  const entries = Object.entries(objectAt({ value }, "value"));
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => typeof entry[1] === "string"));
}

function portsOf(container: RawObject): readonly NamedPort[] {
  return objectsAt(container, "ports").flatMap((item) => {
    const [name, protocol, port] = [
      textAt(item, "name"),
      protocolOf(item["protocol"]),
      numberOf(item["containerPort"]),
    ];
    return name === undefined || protocol === undefined || !isPort(port) ? [] : [{ name, protocol, port }];
  });
}
