import { IP_FAMILIES } from "@fairlead/base";
import type { ForwardingPlan } from "@fairlead/core";
import { type NftablesClient, openNftables, type Runner } from "@fairlead/kernel";
import { NFT_FAMILY, type NftTable, ruleText, tableText } from "@fairlead/netfilter/nft";
import { clusterIPGroup, endpoints, planOf } from "@fairlead/testkit/plans";
import { insideTest } from "@fairlead/testkit/real-kernel";
import { expect } from "vitest";
import { createNftablesBackend, planTable } from "../src/index.ts";
import { planOfEveryKind } from "./support/every-kind.ts";
import { DAMAGES, described, lookedAt } from "./support/tables.ts";
import { recordings } from "./support/world.ts";

interface TestKernel {
  readonly nft: NftablesClient;
  /** For `nft`, which reads what we write. */
  readonly runner: Runner;
}

function kernelTest(name: string, body: (kernel: TestKernel) => Promise<void>): void {
  insideTest(name, async ({ runner }) => {
    const nft = await openNftables();
    await body({ nft, runner }).finally(() => nft.close());
  });
}

/** Has the kernel hold a plan's table, `nft` print it and read what it printed, and what is printed here. */
async function thereAndBack({ nft, runner }: TestKernel, plan: ForwardingPlan, name: string): Promise<void> {
  const family = NFT_FAMILY[plan.family];
  await createNftablesBackend(nft, { family: plan.family }).sync(plan);
  const held = await nft.table(family, "kube-proxy");
  expect(held && described(held), name).toEqual(described(planTable(plan)));
  const planned = planTable(plan);
  const replaced = async (input: string) => {
    await runner.run(["nft", "-f", "-"], { input: `delete table ${family} kube-proxy\n${input}` });
    const loaded = await nft.table(family, "kube-proxy");
    expect(loaded && setsOf(loaded), `${name}, loaded`).toEqual(setsOf(planned));
    return loaded;
  };
  const { stdout: listed } = await runner.run(["nft", "list", "table", family, "kube-proxy"]);
  // Rules may differ: nft takes the maps' `tcp dport` at its word.
  await replaced(listed);
  const loaded = await replaced(tableText(planned));
  // nft loads registers in another order, which the text does not show.
  expect(loaded && rulesOf(loaded), `${name}, loaded`).toEqual(rulesOf(planned));
}

/** nft 1.0.6 takes marks for numbers in network byte order where a concatenation of them is what intervals lead to. */
function setsOf(table: NftTable) {
  const { sets } = described(table);
  return Object.fromEntries(Object.entries(sets).filter(([name]) => !/^weighted-.*\/sticky$/.test(name)));
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

kernelTest("nft prints drawn numbers in the byte order in which packets draw them", async ({ nft, runner }) => {
  const two = endpoints(2);
  const weighted = clusterIPGroup("weighted", "10.96.0.10", two, { weights: { cluster: { endpoints: [1, 3] } } });
  const alike = clusterIPGroup("alike", "10.96.0.11", two);
  await createNftablesBackend(nft, { family: "IPv4" }).sync(planOf([weighted, alike]));
  const { stdout } = await runner.run(["nft", "list", "table", "ip", "kube-proxy"]);
  expect(stdout).toContain("{ 0-1073741823 : 10.144.0.0 . 8080, 1073741824-4294967295 : 10.144.0.1 . 8080 }");
  for (const slot of [0, 1]) expect(stdout).toContain(`10.96.0.11 . tcp . 80 . ${slot} : 10.144.0.${slot} . 8080`);
});

const HOSTILE = 'x"; flush ruleset; #\n\u202e{}';

kernelTest("no name leaves its comment, or makes a chain that cannot be", async (kernel) => {
  // One of them is cut in the middle of a letter, wherever that is.
  for (const name of [HOSTILE + "é".repeat(200), `${HOSTILE}x${"é".repeat(200)}`]) {
    await thereAndBack(kernel, planOfEveryKind("IPv4", name), name);
    const { stdout } = await kernel.runner.run(["nft", "list", "ruleset"]);
    expect(stdout).not.toContain('";');
  }
});

kernelTest(
  "the kernel's own table does not differ from what was written, until it is damaged",
  async ({ nft, runner }) => {
    for (const family of ["IPv4", "IPv6"] as const) {
      const backend = createNftablesBackend(nft, { family });
      const plan = planOfEveryKind(family);
      await backend.sync(plan);
      expect(await lookedAt(backend), family).toBeUndefined();
      const before = await nft.table(NFT_FAMILY[family], "kube-proxy");
      if (family === "IPv6" || before === undefined) continue;
      const repaired = async (what: string, said: string) => {
        const difference = await lookedAt(backend);
        expect(difference?.what.join("; "), what).toContain(said);
        if (difference?.repaired === false) await backend.sync(plan);
        const after = await nft.table("ip", "kube-proxy");
        expect(after && described(after), what).toEqual(described(before));
        expect(await lookedAt(backend), what).toBeUndefined();
      };
      for (const [what, [damage, said]] of Object.entries(DAMAGES)) {
        await nft.commit(damage(before));
        await repaired(what, said);
      }
      await runner.run(["nft", "add table ip kube-proxy { flags dormant; }"]);
      await repaired("dormant", "the table is dormant");
      const { stdout } = await runner.run(["nft", "list", "table", "ip", "kube-proxy"]);
      await runner.run(["nft", "-f", "-"], { input: `delete table ip kube-proxy\n${stdout}` });
      await repaired("written again by nft", "differs in its rules");
    }
  },
);
