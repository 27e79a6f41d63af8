import { familyConflicts, nodeExclusions } from "@fairlead/intake";
import { whyUnserved } from "../node/primary-family.ts";
import type { Agent, AgentParts } from "./parts.ts";

/**
 * Why this node must not be served as it is configured; undefined: it may. What is only odd in the configuration is
 * logged.
 */
export function whyRefused({ config, unserved, log }: AgentParts, agent: Agent): string | undefined {
  const { families: served, inputs } = agent;
  const { primaryFamily: primary, node } = inputs;
  const reason = whyUnserved(primary, unserved);
  if (reason !== undefined) return reason;
  const podCIDRs = node?.podCIDRs ?? [];
  const { fatal, warnings } = familyConflicts({ config, primary: primary.family, served, podCIDRs });
  for (const warning of [...warnings, ...nodeExclusions(config, node?.addresses ?? [])]) log.warn(warning);
  return fatal.length === 0 ? undefined : fatal.join("; ");
}
