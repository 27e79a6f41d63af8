import { type Damage, inflict } from "@fairlead/lab/faults";
import {
  type ConformanceCase,
  conformanceTable,
  differences,
  expectedWays,
  packetFamily,
  tracedWays,
} from "@fairlead/testkit";
import { beforeAll, describe, expect, test } from "vitest";
import { groupCases } from "../../src/cases/conformance/groups.ts";
import { strays } from "../../src/cases/conformance/probe-case.ts";
import { type ProgrammedLab, portsOf, programmedLab } from "../../src/cases/conformance/programmed.ts";
import { labFor } from "./lab-for.ts";

/** For each kind of assertion a row that makes it, and what takes the ground from under it. */
const DAMAGES: readonly { readonly name: string; readonly damage: Damage }[] = [
  { name: "cluster IP: a pod reaches the one endpoint", damage: { table: "nat", remove: /default\/svc-11 -> / } },
  {
    name: "cluster IP: a pod is spread evenly over three endpoints",
    damage: { table: "nat", remove: /default\/svc-12 -> 10\.144\.1\.5:8080/ },
  },
  { name: "cluster IP: UDP", damage: { table: "nat", remove: /default\/svc-13 -> 10\.144\.1\.5:8080/ } },
  {
    name: "cluster IP: the node's own traffic is masqueraded",
    damage: { table: "nat", remove: /-A KUBE-POSTROUTING .*MASQUERADE/ },
  },
  {
    name: "cluster IP: a pod of another node is a pod",
    damage: { table: "nat", insert: ["KUBE-SERVICES", "-d", "10.96.2.11", "-j", "KUBE-MARK-MASQ"] },
  },
  {
    name: "cluster IP: no endpoints: a pod is refused",
    damage: { table: "filter", remove: /-d 10\.96\.2\.16\/32 .*REJECT/ },
  },
  {
    name: "hairpin: a pod that calls itself is masqueraded",
    damage: { table: "nat", remove: /-s 10\.144\.1\.5\/32 .*svc-21".*KUBE-MARK-MASQ/ },
  },
  { name: "node port: from outside", damage: { table: "nat", remove: /-A KUBE-NODEPORTS .*--dport 30031 / } },
  { name: "node port: on localhost", damage: { table: "nat", remove: /-A KUBE-NODEPORTS .*--dport 30031 / } },
  {
    name: "load balancer: source ranges: a client that is not in them is dropped",
    damage: { table: "filter", remove: /-A KUBE-PROXY-FIREWALL -d 203\.0\.113\.56\/32 / },
  },
  {
    name: "traffic policy: external Local without an endpoint here: dropped",
    damage: { table: "filter", remove: /default\/svc-75 .*DROP/ },
  },
  {
    name: "traffic policy: external Local: from outside to the endpoint here, its source kept",
    damage: { table: "nat", insert: ["KUBE-SERVICES", "-s", "198.51.100.7", "-j", "KUBE-MARK-MASQ"] },
  },
  { name: "affinity: a pod stays with its endpoint", damage: { table: "nat", remove: /svc-101 .*--rcheck/ } },
  {
    name: "foreign: its ClusterIP from a pod",
    damage: {
      table: "nat",
      insert: ["PREROUTING", "-d", "10.96.2.111", "-p", "tcp", "-j", "DNAT", "--to-destination", "10.144.1.5:8080"],
    },
  },
  { name: "SCTP: a pod reaches the endpoint", damage: { table: "nat", remove: /default\/svc-171 -> / } },
  { name: "SCTP: from the node", damage: { table: "nat", remove: /-A KUBE-POSTROUTING .*MASQUERADE/ } },
  { name: "SCTP: no endpoints: refused", damage: { table: "filter", remove: /-d 10\.96\.2\.173\/32 .*REJECT/ } },
];

describe("the checker sees what is wrong", () => {
  const rows = DAMAGES.map(({ name }) => rowNamed(name));
  const lab = labFor(portsOf(rows));
  let node: ProgrammedLab;

  beforeAll(async () => {
    node = await programmedLab(lab, "nft");
  });

  for (const { name, damage } of DAMAGES) {
    test(name, async () => {
      const row = rowNamed(name);
      const { iptables } = row.expected;
      if ("skip" in iptables) throw new Error(`${name} expects nothing of iptables`);
      for (const group of groupCases(rows)) await node.program(group);
      expect(await strays(lab, row, iptables), "before").toEqual([]);
      await inflict(lab.runner("node-a"), damage);
      const ruleSet = (await node.read())[packetFamily(row.packet)];
      const traced = differences(expectedWays(iptables), tracedWays(row, ruleSet), { probabilities: true });
      expect(traced, "tracer").not.toEqual([]);
      expect(await strays(lab, row, iptables, { patienceMs: 300 }), "real packets").not.toEqual([]);
    });
  }
});

function rowNamed(name: string): ConformanceCase {
  const row = conformanceTable.find((candidate) => candidate.name === name);
  if (row === undefined) throw new Error(`no row is named ${name}`);
  return row;
}
