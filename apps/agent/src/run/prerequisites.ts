import type { Agent, AgentParts } from "./parts.ts";
import type { Prerequisite } from "./readiness.ts";

/** What the rules cannot be made without. Manifests may do without a Node: then nothing is local. */
export function prerequisites({ config, unserved, networks }: AgentParts, { inputs }: Agent): readonly Prerequisite[] {
  const fromNode = config.manifests === undefined;
  // Which family has to be served is said by the addresses, too.
  const needsAddresses = inputs.needsAddresses || unserved.size > 0;
  return [
    "services",
    "endpointSlices",
    "node",
    ...(needsAddresses ? (["addresses"] as const) : []),
    ...(fromNode && config.nodePortAddresses.includes("primary") ? (["nodeAddresses"] as const) : []),
    ...(fromNode && config.detectLocal.kind === "node-cidr" ? (["podCIDRs"] as const) : []),
    ...(networks === undefined ? [] : (["networks"] as const)),
  ];
}
