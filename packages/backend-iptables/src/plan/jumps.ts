import { comment, jump, type Match, type Rule, type Table } from "@fairlead/netfilter";
import {
  EXTERNAL_SERVICES,
  FORWARD,
  KUBELET_FIREWALL,
  NODE_PORTS,
  POSTROUTING,
  PROXY_FIREWALL,
  SERVICES,
} from "./names.ts";

/** The rules of a built-in chain that lead to ours, in their order. */
export interface Jumps {
  readonly table: Extract<Table, "filter" | "nat">;
  readonly chain: string;
  readonly rules: readonly Rule[];
}

/** Only a connection's first packet has to be asked about services; the others are conntrack's. */
const NEW: Match = { kind: "conntrack", states: ["NEW"] };

const toFirewall: Rule = { matches: [NEW, comment("kubernetes load balancer firewall")], target: jump(PROXY_FIREWALL) };
const toHealthChecks: Rule = { matches: [comment("kubernetes health check service ports")], target: jump(NODE_PORTS) };
const toExternal: Rule = {
  matches: [NEW, comment("kubernetes externally-visible service portals")],
  target: jump(EXTERNAL_SERVICES),
};
const toForward: Rule = { matches: [comment("kubernetes forwarding rules")], target: jump(FORWARD) };
const toServices: Rule = { matches: [NEW, comment("kubernetes service portals")], target: jump(SERVICES) };
const toNatServices: Rule = { matches: [comment("kubernetes service portals")], target: jump(SERVICES) };
const toPostrouting: Rule = { matches: [comment("kubernetes postrouting rules")], target: jump(POSTROUTING) };

export const JUMPS: readonly Jumps[] = [
  { table: "filter", chain: "INPUT", rules: [toFirewall, toHealthChecks, toExternal] },
  { table: "filter", chain: "FORWARD", rules: [toFirewall, toForward, toServices, toExternal] },
  { table: "filter", chain: "OUTPUT", rules: [toFirewall, toServices] },
  { table: "nat", chain: "PREROUTING", rules: [toNatServices] },
  { table: "nat", chain: "OUTPUT", rules: [toNatServices] },
  { table: "nat", chain: "POSTROUTING", rules: [toPostrouting] },
];

/** Jumps to kubelet's chain: shared with it, so they are made where they are missing and otherwise left alone. */
export const KUBELET_JUMP: Rule = { matches: [], target: jump(KUBELET_FIREWALL) };
export const KUBELET_JUMP_CHAINS: readonly string[] = ["INPUT", "OUTPUT"];
