import { IP_FAMILIES } from "@fairlead/base";
import type { ForwardingPlan } from "@fairlead/core";
import { NFT_FAMILY, type NftTable, ruleText, tableText } from "@fairlead/netfilter/nft";
import { expect } from "vitest";
import { createNftablesBackend, planTable } from "../src/index.ts";
import { described } from "./support/described.ts";
import { planOfEveryKind } from "./support/every-kind.ts";
import { recordings } from "./support/golden.ts";
import { kernelTest, type TestKernel } from "./support/real-kernel.ts";

/** Has the kernel hold a plan's table, `nft` print it and read what it printed, and what is printed here. */
async function thereAndBack({ nft, runner }: TestKernel, plan: ForwardingPlan, name: string): Promise<void> {
  const family = NFT_FAMILY[plan.family];
  await createNftablesBackend(nft, { family: plan.family }).sync(plan);
  const held = await nft.table(family, "kube-proxy");
  expect(held && described(held), name).toEqual(described(planTable(plan)));
  const planned = planTable(plan);
  const replaced = async (input: string) => {
    await runner.run(["nft", "delete", "table", family, "kube-proxy"]);
    await runner.run(["nft", "-f", "-"], { input });
    const loaded = await nft.table(family, "kube-proxy");
    expect(loaded && described(loaded).sets, `${name}, loaded`).toEqual(described(planned).sets);
    return loaded;
  };
  const { stdout: listed } = await runner.run(["nft", "list", "table", family, "kube-proxy"]);
  // Rules may differ: nft takes the maps' `tcp dport` at its word.
  await replaced(listed);
  const loaded = await replaced(tableText(planned));
  // nft loads registers in another order, which the text does not tell.
  expect(loaded && rulesOf(loaded), `${name}, loaded`).toEqual(rulesOf(planned));
}

function rulesOf(table: NftTable) {
  const texts = [...table.chains].map(([name, { rules }]) => [name, rules.map((rule) => ruleText(rule, table))]);
  return Object.fromEntries(texts);
}

kernelTest(
  "every recording: the kernel holds what was planned, and nft prints it and takes what it printed",
  async (kernel) => {
    for (const { name, family, plan } of recordings()) await thereAndBack(kernel, plan, `${name} ${family}`);
  },
);

kernelTest("so it is with every kind of frontend, with and without affinity", async (kernel) => {
  for (const family of IP_FAMILIES) await thereAndBack(kernel, planOfEveryKind(family), family);
});

const HOSTILE = 'x"; flush ruleset; #\n\u202e{}';

kernelTest("no name leaves its comment, or makes a chain that cannot be", async (kernel) => {
  for (const name of [HOSTILE, "x".repeat(300), "é".repeat(200)]) {
    await thereAndBack(kernel, planOfEveryKind("IPv4", name), name);
    const { stdout } = await kernel.runner.run(["nft", "list", "ruleset"]);
    expect(stdout).not.toContain('";');
  }
});
