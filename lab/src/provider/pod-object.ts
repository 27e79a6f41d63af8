import type { ApiObject } from "../control-plane/api-client.ts";
import type { WantedPod } from "./cluster.ts";

/** A pod bound to its node; `spec` has its containers. */
export function podObject(
  name: string,
  { namespace, node, labels = {} }: WantedPod,
  spec: Readonly<Record<string, unknown>>,
): ApiObject {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace, labels },
    spec: { nodeName: node.name, enableServiceLinks: false, ...spec },
  };
}
