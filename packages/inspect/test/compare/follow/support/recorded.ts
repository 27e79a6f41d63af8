import { familyOf, type IPFamily, toEnd } from "@fairlead/base";
import type { ForwardingPlan, ModeSemantics, PlannerOptions } from "@fairlead/core";
import { NFT_FAMILY, readTables } from "@fairlead/netfilter/nft";
import {
  type GoldenScenario,
  goldenPlannerOptions,
  IPVS_RECORDED_ON,
  readIpvsText,
  TestCluster,
} from "@fairlead/testkit";
import type { KernelState } from "../../../../src/index.ts";
import {
  type Difference,
  factsOf,
  groupDifferences,
  ipvsEnvironment,
  ownRules,
  savedRules,
  straysIn,
} from "../../../../src/index.ts";
import { checkedView } from "./checked-view.ts";

interface RecordedMode {
  readonly options: (scenario: GoldenScenario, semantics: ModeSemantics) => PlannerOptions;
  readonly text: (scenario: GoldenScenario, family: IPFamily) => string;
  /** @param own the node's address */
  readonly state: (text: string, family: IPFamily, own: string) => KernelState;
}

const RECORDED = {
  iptables: {
    options: ({ node }, semantics) => goldenPlannerOptions(node, semantics),
    text: ({ iptables, ip6tables = "" }, family) => (family === "IPv4" ? iptables : ip6tables),
    state: (text, family, own) => ({ ruleSet: rulesIn(text, family), environment: { localAddresses: [own] } }),
  },
  nftables: {
    options: ({ node }, semantics) => {
      const own = (family: IPFamily) => node.addresses.filter((address) => familyOf(address) === family);
      const nodePortAddresses = byFamily((family) => ({ kind: "list" as const, addresses: own(family) }));
      return goldenPlannerOptions(node, semantics, { nodePortAddresses });
    },
    text: ({ nft }) => nft,
    state: (text, family, own) => {
      const nftables = readTables(text).filter((table) => table.family === NFT_FAMILY[family]);
      const ofProxy = nftables.filter(({ name }) => name === "kube-proxy");
      return { ruleSet: new Map(), nftables: ofProxy, environment: { localAddresses: [own] } };
    },
  },
  ipvs: {
    options: ({ node, dualStack }, semantics) => {
      const { IPv4, IPv6 } = IPVS_RECORDED_ON;
      const nodeIPs = { IPv4, ...(dualStack && { IPv6 }) };
      const nodeAddresses = { IPv4: ["127.0.0.1", IPv4], IPv6: ["::1", IPv6] };
      return goldenPlannerOptions(node, semantics, { nodeIPs, nodeAddresses });
    },
    text: ({ ipvs }) => ipvs,
    state: ipvsState,
  },
} satisfies Record<string, RecordedMode>;

type Mode = keyof typeof RECORDED;
export const MODES: readonly Mode[] = ["iptables", "nftables", "ipvs"];

function byFamily<T>(value: (family: IPFamily) => T) {
  return { IPv4: value("IPv4"), IPv6: value("IPv6") };
}

/** What kube-proxy recorded in one mode and family, as texts of the tools that a test may damage. */
export interface Recorded {
  readonly mode: Mode;
  readonly family: IPFamily;
  readonly plan: ForwardingPlan;
  readonly nodeAddress: string;
  readonly text: string;
}

export function recorded(scenario: GoldenScenario, mode: Mode, family: IPFamily): Recorded {
  const options = RECORDED[mode].options(scenario, factsOf(mode).semantics);
  const cluster = new TestCluster(options);
  cluster.put(...scenario.objects);
  cluster.replan();
  const nodeAddress = options.nodeIPs[family] ?? "";
  return { mode, family, plan: cluster.plan(family), nodeAddress, text: RECORDED[mode].text(scenario, family) };
}

export interface Found extends Difference {
  readonly service: string;
}

export function differencesIn({ mode, family, plan, nodeAddress, text }: Recorded): readonly Found[] {
  const state = RECORDED[mode].state(text, family, nodeAddress);
  const view = checkedView(state);
  const found = [...plan.groups.values()].flatMap((group) =>
    groupDifferences(group, plan.node, view, nodeAddress).map((one) => ({ service: group.name, ...one })),
  );
  const strays = toEnd(straysIn(plan, state)).map(({ address = "node port", port }) => {
    const service = `${address} ${port}`;
    return { service, kind: "extra" as const, packet: "", wanted: "nothing", found: "it is taken" };
  });
  return [...found, ...strays];
}

function ipvsState(text: string, family: IPFamily, own: string): KernelState {
  const { rules, servers, sets, addresses } = readIpvsText(text);
  const environment = ipvsEnvironment({ localAddresses: [own] }, { servers, sets, addresses: new Set(addresses) });
  return { ruleSet: rulesIn(rules[family] ?? "", family), environment };
}

function rulesIn(text: string, family: IPFamily) {
  return ownRules(savedRules(text, family));
}
