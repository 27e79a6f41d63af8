import type { ResourceRef } from "./source.ts";

/** core/v1 Nodes, all of them: several sources read them, and their addresses are neutral. */
export const NODES: ResourceRef = { group: "", version: "v1", plural: "nodes", kind: "Node", namespaced: false };
