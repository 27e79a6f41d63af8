import { familyOf, type IPFamily } from "@fairlead/base";
import type { ForwardingPlan, PlannerOptions } from "@fairlead/core";
import { factsOf, type KernelState } from "@fairlead/inspect";
import { LazySaveParser, ServerReader, SetReader } from "@fairlead/netfilter";
import { NFT_FAMILY, readTables } from "@fairlead/netfilter/nft";
import { type GoldenScenario, goldenPlannerOptions, TestCluster } from "@fairlead/testkit";
import { packetSet } from "@fairlead/trace";
import { type Difference, groupDifferences, ownRules, straysIn, viewOf } from "../../src/index.ts";

export const MODES = ["iptables", "nftables", "ipvs"] as const;
type Mode = (typeof MODES)[number];

/** The recordings in ipvs mode were made on a node of these addresses. */
const OF_IPVS = { IPv4: "10.201.0.60", IPv6: "fd00:201::60" } as const;

/** What kube-proxy recorded in one mode and family, as texts of the tools that a test may damage. */
export interface Recorded {
  readonly mode: Mode;
  readonly family: IPFamily;
  readonly plan: ForwardingPlan;
  readonly nodeAddress: string;
  readonly text: string;
}

export function recorded(scenario: GoldenScenario, mode: Mode, family: IPFamily): Recorded {
  const options = optionsOf(scenario, mode);
  const cluster = new TestCluster(options);
  cluster.put(...scenario.objects);
  cluster.replan();
  const nodeAddress = options.nodeIPs[family] ?? "";
  return { mode, family, plan: cluster.plan(family), nodeAddress, text: textOf(scenario, mode, family) };
}

function textOf({ iptables, ip6tables, nft, ipvs }: GoldenScenario, mode: Mode, family: IPFamily): string {
  if (mode === "iptables") return family === "IPv4" ? iptables : (ip6tables ?? "");
  return mode === "nftables" ? nft : ipvs;
}

function optionsOf({ node, dualStack }: GoldenScenario, mode: Mode): PlannerOptions {
  const { semantics } = factsOf(mode);
  const byFamily = <T>(value: (family: IPFamily) => T) => ({ IPv4: value("IPv4"), IPv6: value("IPv6") });
  const own = (family: IPFamily) => node.addresses.filter((address) => familyOf(address) === family);
  if (mode === "iptables") return goldenPlannerOptions(node, semantics);
  if (mode === "nftables") {
    const nodePortAddresses = byFamily((family) => ({ kind: "list" as const, addresses: own(family) }));
    return goldenPlannerOptions(node, semantics, { nodePortAddresses });
  }
  const nodeIPs = { IPv4: OF_IPVS.IPv4, ...(dualStack && { IPv6: OF_IPVS.IPv6 }) };
  const nodeAddresses = { IPv4: ["127.0.0.1", OF_IPVS.IPv4], IPv6: ["::1", OF_IPVS.IPv6] };
  return goldenPlannerOptions(node, semantics, { nodeIPs, nodeAddresses });
}

export interface Found extends Difference {
  readonly service: string;
}

/** What differs between a plan and a text of the kernel. */
export function differencesIn({ mode, family, plan, nodeAddress, text }: Recorded): readonly Found[] {
  const state = stateOf(mode, family, nodeAddress, text);
  const view = viewOf(state);
  const found = [...plan.groups.values()].flatMap((group) =>
    groupDifferences(group, plan.node, view, nodeAddress).map((one) => ({ service: group.name, ...one })),
  );
  const strays = toEnd(straysIn(plan, state)).map(({ address = "node port", port }) => {
    const service = `${address} ${port}`;
    return { service, kind: "extra" as const, packet: "", wanted: "nothing", found: "it is taken" };
  });
  return [...found, ...strays];
}

function toEnd<T>(steps: Generator<void, T, void>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

function stateOf(mode: Mode, family: IPFamily, own: string, text: string): KernelState {
  const environment = { localAddresses: [own] };
  if (mode === "nftables") {
    const tables = readTables(text).filter((table) => table.family === NFT_FAMILY[family]);
    return { ruleSet: new Map(), nftables: tables.filter(({ name }) => name === "kube-proxy"), environment };
  }
  if (mode === "iptables") return { ruleSet: rulesIn(text, family), environment };
  const sections = cut(text);
  const lines = (name: string) => sections.get(name) ?? [];
  const servers = items(lines("ipvsadm"), new ServerReader()).filter((server) => server.family === family);
  const sets = items(lines("ipset"), new SetReader());
  const addresses = lines("kube-ipvs0").flatMap((line) => /inet6? ([^/]+)\//.exec(line)?.[1] ?? []);
  return {
    ruleSet: rulesIn(lines(family === "IPv4" ? "iptables" : "ip6tables").join("\n"), family),
    environment: {
      localAddresses: [own, ...addresses],
      sets: new Map(sets.map(({ name, type, members }) => [name, packetSet(type, members)])),
      ipvs: { servers, conntrack: true, expireQuiescentTemplate: true },
    },
  };
}

function rulesIn(text: string, family: IPFamily) {
  const parser = new LazySaveParser({ family });
  parser.push(text);
  return ownRules(parser.end());
}

/** `# NAME` begins a section. */
function cut(text: string): ReadonlyMap<string, string[]> {
  const sections = new Map<string, string[]>();
  let current: string[] = [];
  for (const line of text.split("\n")) {
    if (!line.startsWith("# ")) current.push(line);
    else {
      current = [];
      sections.set(line.slice(2), current);
    }
  }
  return sections;
}

function items<T>(lines: readonly string[], reader: { push(line: string): T | undefined; end(): T | undefined }): T[] {
  return [...lines.map((line) => reader.push(line)), reader.end()].filter((item) => item !== undefined);
}
