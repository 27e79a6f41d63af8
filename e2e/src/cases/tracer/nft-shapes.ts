import type { BaseChain } from "@fairlead/netfilter/nft";

/** Where a chain is: what may be said there, and which chains it leads to, later ones only. */
export interface Shape {
  readonly name: string;
  readonly base?: BaseChain;
  readonly end: "mark" | "dnat" | "masquerade" | "filter";
  readonly calls: readonly string[];
  readonly map?: "dispatch" | "gates";
}

const base = (type: BaseChain["type"], hook: BaseChain["hook"], priority: number): BaseChain => {
  return { type, hook, priority, policy: "accept" };
};

/** Callees first: nft reads a table from its beginning. */
export const CHAINS: readonly Shape[] = [
  { name: "endpoint", end: "dnat", calls: [] },
  { name: "service", end: "dnat", calls: ["endpoint"] },
  { name: "services", end: "dnat", calls: ["service", "endpoint"], map: "dispatch" },
  { name: "leaving", end: "masquerade", calls: [] },
  { name: "decision", end: "filter", calls: [] },
  { name: "gate", end: "filter", calls: ["decision"] },
  { name: "early", base: base("filter", "prerouting", -150), end: "mark", calls: [] },
  {
    name: "nat-in",
    base: base("nat", "prerouting", -100),
    end: "dnat",
    calls: ["services", "service"],
    map: "dispatch",
  },
  { name: "nat-own", base: base("nat", "output", -100), end: "dnat", calls: ["services", "service"], map: "dispatch" },
  { name: "nat-out", base: base("nat", "postrouting", 100), end: "masquerade", calls: ["leaving"] },
  { name: "filter-in", base: base("filter", "input", 0), end: "filter", calls: ["gate", "decision"], map: "gates" },
  {
    name: "filter-through",
    base: base("filter", "forward", 0),
    end: "filter",
    calls: ["gate", "decision"],
    map: "gates",
  },
  { name: "filter-out", base: base("filter", "output", 0), end: "filter", calls: ["gate"], map: "gates" },
];
