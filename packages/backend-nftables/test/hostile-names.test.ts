import type { ForwardingPlan, ServicePortGroup } from "@fairlead/core";
import { type NftTable, readTables, tableText } from "@fairlead/netfilter/nft";
import { webState } from "@fairlead/testkit/histories";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { planTable } from "../src/index.ts";
import { openWorld } from "./support/world.ts";

const HOSTILE = 'web"\nadd rule ip filter input accept\n} flush ruleset; comment "\\" # \u0000';

test("names that nobody should have end in no other words than their own", async () => {
  const benign = tableNamed("default/web");
  const words = (table: NftTable) =>
    tableText(table)
      .replace(/"[^"\n]*"/g, "")
      .replace(/firewall-\S+/g, "");
  fc.assert(
    fc.property(fc.string({ unit: "binary", minLength: 1, maxLength: 300 }), (name) => {
      const table = tableNamed(name);
      const text = tableText(table);
      expect(words(table)).toBe(words(benign));
      expect(text).toMatch(/^[\t\n\x20-\x7e]*$/);
      expect(text.split("\n")).toHaveLength(tableText(benign).split("\n").length);
      for (const chain of table.chains.keys()) expect(chain).toMatch(/^[\w./-]{1,255}$/);
    }),
    { numRuns: runs(150) },
  );
});

test("a name made of quotes, line ends and commands reads back as one table with the same chains and sets", () => {
  const [benign, table] = [tableNamed("default/web"), tableNamed(HOSTILE)];
  const [read, ...others] = readTables(tableText(table));
  expect(others).toEqual([]);
  expect([...(read?.sets.keys() ?? [])]).toEqual([...benign.sets.keys()]);
  expect(read?.chains.size).toBe(benign.chains.size);
});

/** The table of a service with every frontend, under this name. */
function tableNamed(name: string): NftTable {
  const world = openWorld();
  world.change([[1, webState({ type: "LoadBalancer", externalIP: true, ranges: true })]]);
  const { plan } = world;
  const groups = new Map(
    Array.from(plan.groups, ([id, group]): [string, ServicePortGroup] => [id, { ...group, name }]),
  );
  return planTable({ ...plan, ...parts(plan), groups });
}

/** A live plan's own properties are getters, which a spread leaves out. */
function parts({ family, node, healthChecks, foreignClusterIPs, endpointCount }: ForwardingPlan) {
  return { family, node, healthChecks, foreignClusterIPs, endpointCount };
}
