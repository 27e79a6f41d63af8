import { nftablesSemantics, planTable } from "@fairlead/backend-nftables";
import { familyOf } from "@fairlead/base";
import { type NftTable, tableText } from "@fairlead/netfilter/nft";
import { goldenPlannerOptions, goldenScenarios, TestCluster } from "@fairlead/testkit";
import { DEVICES } from "./network.ts";

/** A recording of kube-proxy with one service for TCP and UDP, and what Fairlead makes of the same objects. */
const SCENARIO = "02-dns-tcp-udp";

export const SERVICE = { address: "10.96.0.10", port: 53, endpoints: ["10.144.1.5", "172.30.23.2"] } as const;

/** Whose rules packets meet. */
export const SUBJECTS = ["kube-proxy", "Fairlead", "Fairlead with the fast path"] as const;
export type Subject = (typeof SUBJECTS)[number];

/** The tables as `nft -f` takes them. */
export function ruleTexts(): Readonly<Record<Subject, string>> {
  const scenario = goldenScenarios().find(({ name }) => name === SCENARIO);
  if (scenario === undefined) throw new Error(`there is no recording ${SCENARIO}`);
  const { node, objects, nft } = scenario;
  const addresses = node.addresses.filter((address) => familyOf(address) === "IPv4");
  const cluster = new TestCluster(
    goldenPlannerOptions(node, nftablesSemantics, {
      nodePortAddresses: { IPv4: { kind: "list", addresses } },
      serviceCIDRs: { IPv4: node.serviceCIDRs },
    }),
  );
  cluster.put(...objects);
  cluster.replan();
  const plan = cluster.plan("IPv4");
  return {
    "kube-proxy": nft,
    Fairlead: tableText(planTable(plan)),
    "Fairlead with the fast path": tableText(withDevices(planTable(plan, { fastPath: true }))),
  };
}

/** The agent adds them in a transaction of its own. */
function withDevices(table: NftTable): NftTable {
  const flowtables = [...(table.flowtables ?? [])].map(
    ([name, flowtable]) => [name, { ...flowtable, devices: DEVICES }] as const,
  );
  return { ...table, flowtables: new Map(flowtables) };
}
