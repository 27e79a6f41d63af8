import type { ForwardingPlan, PlanChange } from "@fairlead/core";
import { FakeNftables } from "@fairlead/kernel/fake";
import { noChange } from "@fairlead/testkit/histories";
import { expect, test } from "vitest";
import { createNftablesBackend, planTable } from "../src/index.ts";
import { described } from "./support/described.ts";
import { planOfEveryKind } from "./support/every-kind.ts";
import { recorded } from "./support/recorded.ts";

const PLAN = planOfEveryKind("IPv4");
const list = (...addresses: readonly string[]) => ({ kind: "list", addresses }) as const;

test.each([
  ["another ClusterIP of another network", { foreignClusterIPs: new Set(["10.96.0.200", "10.96.0.201"]) }, "partial"],
  ["no ClusterIP of another network any more", { foreignClusterIPs: new Set<string>() }, "partial"],
  ["other service CIDRs", node({ serviceCIDRs: ["10.96.0.0/16", "10.112.0.0/16"] }), "partial"],
  ["no service CIDR that is known", node({ serviceCIDRs: [] }), "partial"],
  ["another address of the node", node({ nodePortAddresses: list("10.201.0.10", "10.201.0.11") }), "partial"],
  ["node ports on every address", node({ nodePortAddresses: { kind: "all" } }), "full"],
  ["another way to tell pods", node({ detector: { kind: "bridge", interface: "cni0" } }), "full"],
  ["no way to tell pods", node({ detector: { kind: "none" } }), "full"],
  ["nothing", {}, "partial"],
] as const)("%s, there and back", async (what, after, kind) => {
  const fake = new FakeNftables();
  const { port, transactions } = recorded(fake);
  const backend = createNftablesBackend(port, { family: "IPv4" });
  await backend.sync(PLAN);
  const changed = { ...PLAN, ...after };
  for (const [from, to] of [
    [PLAN, changed],
    [changed, PLAN],
  ] as const) {
    transactions.length = 0;
    expect((await backend.apply(to, between(from, to))).kind).toBe(kind);
    expect(transactions).toHaveLength(what === "nothing" ? 0 : 1);
    const table = fake.tableNow("ip", "kube-proxy");
    expect(table && described(table)).toEqual(described(planTable(to)));
  }
});

test("node ports are not served on loopback addresses", () => {
  const plan = { ...PLAN, ...node({ nodePortAddresses: list("127.0.0.1", "10.201.0.10") }) };
  expect(planTable(plan).sets.get("nodeport-ips")?.elements.size).toBe(1);
});

function node(change: Partial<ForwardingPlan["node"]>): Pick<ForwardingPlan, "node"> {
  return { node: { ...PLAN.node, ...change } };
}

/** What the planner says of two plans with the same groups. */
function between(from: ForwardingPlan, to: ForwardingPlan): PlanChange {
  const without = (a: ReadonlySet<string>, b: ReadonlySet<string>) => [...a].filter((address) => !b.has(address));
  const added = without(to.foreignClusterIPs, from.foreignClusterIPs);
  const removed = without(from.foreignClusterIPs, to.foreignClusterIPs);
  const node = from.node === to.node ? {} : { node: { before: from.node, after: to.node } };
  return { ...noChange, ...node, foreignClusterIPs: { added, removed } };
}
