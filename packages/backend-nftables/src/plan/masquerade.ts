import type { LocalTrafficDetector } from "@fairlead/core";
import { type Expression, statements } from "@fairlead/netfilter/nft";
import type { PlanContext } from "./context.ts";

const { addressIn, addressTypeIs, interfaceIs, setMark } = statements;

/** `meta mark set meta mark | 0x4000`: to be masqueraded on the way out. */
export function markForMasquerading({ mark }: PlanContext): readonly Expression[] {
  return setMark(mark);
}

export const fromNode: readonly Expression[] = addressTypeIs("saddr", "local");

/** Pods of this node are the sender: the beginnings of rules of which one matches. None: they cannot be recognized. */
export function fromPods({ detector, family }: PlanContext): readonly (readonly Expression[])[] {
  switch (detector.kind) {
    case "none":
      return [];
    case "cidrs":
      return detector.cidrs.map((cidr) => addressIn(family, "saddr", cidr));
    default:
      return [interfaceIs("iifname", interfaceName(detector))];
  }
}

/** Pods of this node are not the sender, as the beginning of one rule; undefined: pods cannot be recognized. */
export function notFromPods({ detector, family }: PlanContext): readonly Expression[] | undefined {
  switch (detector.kind) {
    case "none":
      return undefined;
    case "cidrs":
      return detector.cidrs.flatMap((cidr) => addressIn(family, "saddr", cidr, "!="));
    default:
      return interfaceIs("iifname", interfaceName(detector), "!=");
  }
}

function interfaceName(detector: Extract<LocalTrafficDetector, { kind: "bridge" | "interface-prefix" }>): string {
  return detector.kind === "bridge" ? detector.interface : `${detector.prefix}*`;
}
