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
