import type { ResourceRef } from "./source.ts";

/** core/v1 Nodes, all of them: several sources read them, and their addresses are neutral. */
export const NODES: ResourceRef = { group: "", version: "v1", plural: "nodes", kind: "Node", namespaced: false };

/** core/v1 Namespaces, for rules that ask for their labels. */
export const NAMESPACES: ResourceRef = {
  group: "",
  version: "v1",
  plural: "namespaces",
  kind: "Namespace",
  namespaced: false,
};

/** Name of the ConfigMap with what operators accepted. */
export const CONSENT_NAME = "fairlead-networks";

/** The ConfigMap with what operators accepted. */
export function consentObject(namespace: string): ResourceRef {
  const only = { namespace, name: CONSENT_NAME };
  return { group: "", version: "v1", plural: "configmaps", kind: "ConfigMap", namespaced: true, only };
}
