import type { ModeSemantics, NodePlan, ServiceKey, ServicePortGroup } from "@fairlead/core";
import { agrees, examine, type PacketFinding } from "../packets/agreement.ts";
import { probesOf } from "../packets/probes.ts";
import { type KernelState, viewOf } from "../packets/view.ts";

/** A kind of packet that reaches its endpoints in one kernel, and not in another. */
export interface BlockedPackets {
  readonly service: ServiceKey;
  readonly finding: PacketFinding;
}

/** What is to be compared: a plan, a kernel that serves it now, and one that would serve it then. */
export interface BlockedRequest {
  readonly groups: Iterable<ServicePortGroup>;
  readonly node: NodePlan;
  readonly before: KernelState;
  readonly after: KernelState;
  /** Where node ports are asked for, and the source of the node's own packets; absent: neither is. */
  readonly nodeAddress: string | undefined;
  readonly semantics: Pick<ModeSemantics, "letsNodeOut">;
}

/**
 * The packets to services that other programs' rules stop in `after` and not in `before`: a firewall that lets pass
 * what one mode marks or accepts, and drops what the other one translates.
 */
export function blockedPackets(request: BlockedRequest): readonly BlockedPackets[] {
  const { groups, node, nodeAddress, semantics } = request;
  const [before, after] = [viewOf(request.before), viewOf(request.after)];
  return [...groups].flatMap((group) =>
    [...probesOf(group, node, nodeAddress)].flatMap((probe) => {
      const finding = examine(group, probe, after);
      if (finding.found === undefined || agrees(finding, semantics)) return [];
      const now = examine(group, probe, before);
      return agrees(now, semantics) ? [{ service: group.service, finding }] : [];
    }),
  );
}
