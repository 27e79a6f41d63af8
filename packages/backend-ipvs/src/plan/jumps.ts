import { comment, jump, type Match, type Rule } from "@fairlead/netfilter";
import type { FrameTable } from "./frame-facts.ts";
import { FORWARD, IPVS_FILTER, IPVS_OUT_FILTER, NODE_PORT, POSTROUTING, PROXY_FIREWALL, SERVICES } from "./names.ts";

/** The rules of a built-in chain that lead to ours, in their order. */
export interface Jumps {
  readonly table: FrameTable;
  readonly chain: string;
  readonly rules: readonly Rule[];
  /** Those of them that iptables mode has word for word. */
  readonly shared: readonly Rule[];
  /** Jumps of iptables mode to chains that both modes have: they must not lead there in this mode. */
  readonly unwanted: readonly Rule[];
}

const toServices = to(SERVICES, comment("kubernetes service portals"));
const toPostrouting = to(POSTROUTING, comment("kubernetes postrouting rules"));
const toForward = to(FORWARD, comment("kubernetes forwarding rules"));
const toFirewall = to(PROXY_FIREWALL, comment("kube-proxy firewall rules"));

const firewallOfIptablesMode = to(
  PROXY_FIREWALL,
  { kind: "conntrack", states: ["NEW"] },
  comment("kubernetes load balancer firewall"),
);

export const JUMPS: readonly Jumps[] = [
  { table: "nat", chain: "PREROUTING", rules: [toServices], shared: [toServices], unwanted: [] },
  { table: "nat", chain: "OUTPUT", rules: [toServices], shared: [toServices], unwanted: [] },
  {
    table: "nat",
    chain: "POSTROUTING",
    rules: [toPostrouting],
    shared: [toPostrouting],
    unwanted: [],
  },
  {
    table: "filter",
    chain: "INPUT",
    rules: [
      to(IPVS_FILTER, comment("kubernetes ipvs access filter")),
      toFirewall,
      to(NODE_PORT, comment("kubernetes health check rules")),
    ],
    shared: [],
    unwanted: [firewallOfIptablesMode],
  },
  {
    table: "filter",
    chain: "FORWARD",
    rules: [toFirewall, toForward],
    shared: [toForward],
    unwanted: [firewallOfIptablesMode],
  },
  {
    table: "filter",
    chain: "OUTPUT",
    rules: [to(IPVS_OUT_FILTER, comment("kubernetes ipvs access filter"))],
    shared: [],
    unwanted: [firewallOfIptablesMode],
  },
];

function to(chain: string, ...matches: readonly Match[]): Rule {
  return { matches, target: jump(chain) };
}
