import type { AgentParts } from "./parts.ts";
import type { Prerequisite } from "./readiness.ts";

/** What the rules cannot be made without. Manifests may do without a Node: then nothing is local. */
export function prerequisites({ config, networks }: AgentParts): readonly Prerequisite[] {
  const fromNode = config.manifests === undefined;
  return [
    "services",
    "endpointSlices",
    "node",
    // A service may choose among them for its node ports; they say which family has to be served, too.
    "addresses",
    ...(fromNode && config.nodePortAddresses.includes("primary") ? (["nodeAddresses"] as const) : []),
    ...(fromNode && config.detectLocal.kind === "node-cidr" ? (["podCIDRs"] as const) : []),
    ...(networks === undefined ? [] : (["networks"] as const)),
  ];
}
