import { FLOWTABLE } from "@fairlead/backend-nftables";
import type { ServicePortGroup } from "@fairlead/core";
import type { NftTable } from "@fairlead/netfilter/nft";
import type { PlannedNode } from "../node-plan.ts";
import type { FastPathExplanation, ServiceExplanation } from "./explanation.ts";

/** By the plan only; undefined: the fast path is not configured, or the port leads to nothing. */
export function fastPathOf(
  { fastPath, planner }: Pick<PlannedNode, "fastPath" | "planner">,
  group: ServicePortGroup | undefined,
): FastPathExplanation | undefined {
  const frontends = group?.frontends.filter(({ treatments }) => treatments.outside.verdict === "proxy") ?? [];
  if (!fastPath || group === undefined || frontends.length === 0) return undefined;
  if (group.protocol === "SCTP") return { used: false, why: "flowtables do not take SCTP" };
  if (group.fastPath === "off") return { used: false, why: "the Service's annotation fairlead.dev/fast-path" };
  const everywhere = planner.plan(group.family).node.nodePortAddresses.kind === "all";
  const isLeftOut = everywhere && frontends.some(({ at }) => at === "node-port");
  const but = isLeftOut ? "; not those to its node port, which is served on all addresses" : "";
  return { used: true, why: `established connections${but}` };
}

/** The same on a node whose tables are known. */
export function fastPathOnNode(
  explanation: ServiceExplanation,
  tablesOf: (family: ServicePortGroup["family"]) => readonly NftTable[] | undefined,
): ServiceExplanation {
  const families = explanation.families.map((one) => {
    const why = whyDisabled(tablesOf(one.family));
    if (why === undefined) return one;
    const ports = one.ports.map((port) => (port.fastPath?.used ? { ...port, fastPath: { used: false, why } } : port));
    return { ...one, ports };
  });
  return { ...explanation, families };
}

function whyDisabled(tables: readonly NftTable[] | undefined): string | undefined {
  if (tables === undefined) return undefined;
  const found = tables.flatMap(({ flowtables }) => flowtables?.get(FLOWTABLE) ?? []);
  if (found.length === 0) return "it is disabled on this node; `fairlead doctor` says why";
  return found.some(({ devices }) => devices.length > 0) ? undefined : "no device is in the flowtable";
}
