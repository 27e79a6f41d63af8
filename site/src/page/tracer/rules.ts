import { iptablesSemantics } from "@fairlead/backend-iptables";
import { nftablesSemantics, planTable } from "@fairlead/backend-nftables";
import { type ForwardingPlan, type ModeSemantics, planOnce } from "@fairlead/core";
import type { IPFamily } from "@fairlead/netfilter";
import { tableText } from "@fairlead/netfilter/nft";
import { parseAllDocuments } from "yaml";
import { iptablesText } from "./iptables-text.ts";

/** The node that rules are made for, in both families. */
export interface DemoNode {
  readonly name: string;
  readonly addresses: readonly string[];
  readonly podCIDRs: readonly string[];
}

export interface MadeRules {
  /** As iptables-save or nft would print them. */
  readonly text: string;
  /** What is wrong with objects, one line each; it was skipped. */
  readonly problems: readonly string[];
}

export type DemoMode = "iptables" | "nftables";

/**
 * The rules that Fairlead writes on a node for Services and EndpointSlices.
 *
 * @param objects YAML or JSON, with `---` between documents; a List is taken as its items
 * @throws Error for text that is not YAML
 */
export async function rulesFor(objects: string, mode: DemoMode, node: DemoNode, family: IPFamily): Promise<MadeRules> {
  const { plans, problems } = planOnce(objectsIn(objects), planOptions(node, SEMANTICS[mode]));
  const text = await TEXTS[mode](plans[family]);
  return { text, problems: problems.map(({ field, value, reason }) => `${field}: ${value}: ${reason}`) };
}

const SEMANTICS: Readonly<Record<DemoMode, ModeSemantics>> = {
  iptables: iptablesSemantics,
  nftables: nftablesSemantics,
};

const TEXTS: Readonly<Record<DemoMode, (plan: ForwardingPlan) => Promise<string>>> = {
  iptables: iptablesText,
  nftables: async (plan) => tableText(planTable(plan)),
};

function planOptions({ name, addresses, podCIDRs }: DemoNode, semantics: ModeSemantics) {
  const six = (text: string) => text.includes(":");
  const detector = (cidrs: readonly string[]) => ({ kind: "cidrs" as const, cidrs });
  const first = (family: (text: string) => boolean) => addresses.find(family);
  const [IPv4, IPv6] = [first((text) => !six(text)), first(six)];
  return {
    nodeName: name,
    nodeIPs: { ...(IPv4 !== undefined && { IPv4 }), ...(IPv6 !== undefined && { IPv6 }) },
    detectors: { IPv4: detector(podCIDRs.filter((cidr) => !six(cidr))), IPv6: detector(podCIDRs.filter(six)) },
    semantics,
  };
}

function objectsIn(text: string): readonly unknown[] {
  return parseAllDocuments(text).flatMap((document) => {
    if (document.errors[0] !== undefined) throw document.errors[0];
    const value: unknown = document.toJS({ maxAliasCount: 100 });
    const items = typeof value === "object" && value !== null && "items" in value ? value.items : undefined;
    return Array.isArray(items) ? items : [value];
  });
}
