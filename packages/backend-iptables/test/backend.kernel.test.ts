import { compareRuleSets, type RuleSet, renderRule } from "@fairlead/netfilter";
import { slotHistory } from "@fairlead/testkit/histories";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect } from "vitest";
import { createIptablesBackend, type RulesPort } from "../src/index.ts";
import { changeOf, clusterIPGroup, endpoints, nodePlan, planOf } from "./support/groups.ts";
import { kernelTest, type TestKernel } from "./support/real-kernel.ts";
import { openWorld } from "./support/world.ts";

const founding = clusterIPGroup("nginx-calico", "10.96.67.75", [{ address: "10.144.154.71", port: 80, local: false }]);

describe.each(["nft", "legacy"] as const)("%s", (variant) => {
  kernelTest("changes lead to the state of a fresh start", async (kernel) => {
    await fc.assert(
      fc.asyncProperty(slotHistory, async (batches) => {
        const port = await kernel.open("IPv4", variant);
        const backend = createIptablesBackend(port, { counters: kernel.counters });
        const world = openWorld();
        await backend.sync(world.plan);
        for (const batch of batches) {
          const change = world.change(batch);
          if (change !== undefined) await backend.apply(world.plan, change);
        }
        const lived = await saved(port);
        for (const table of ["filter", "nat"]) {
          await iptables(kernel, port, ["-t", table, "-F"]);
          await iptables(kernel, port, ["-t", table, "-X"]);
        }
        await createIptablesBackend(port, { counters: kernel.counters }).sync(world.plan);
        expect(compareRuleSets(await saved(port), lived)).toEqual([]);
      }),
      { numRuns: runs(4) },
    );
  });

  kernelTest("flushed tables are seen and brought back", async (kernel) => {
    const port = await kernel.open("IPv6", variant);
    const pod = { address: "fd00:144::5", port: 8080, local: false };
    const web = clusterIPGroup("web", "fd00:10:96::10", [pod], { family: "IPv6" });
    const plan = planOf([web], nodePlan({ kind: "cidrs", cidrs: ["fd00:144::/48"] }));
    const backend = createIptablesBackend(port, { counters: kernel.counters });
    await backend.sync(plan);
    const before = await saved(port);
    expect(await backend.difference(plan)).toBeUndefined();
    for (const flush of [
      ["-t", "nat", "-F"],
      ["-t", "filter", "-F"],
      ["-t", "nat", "-X"],
    ]) {
      if (flush.at(-1) === "-X") await iptables(kernel, port, ["-t", "nat", "-F"]);
      await iptables(kernel, port, flush);
      expect(await backend.difference(plan), flush.join(" ")).toBeDefined();
      await backend.sync(plan);
      expect(compareRuleSets(before, await saved(port)), flush.join(" ")).toEqual([]);
    }
  });

  kernelTest("many services: batches, one change, cleanup", async (kernel) => {
    const port = await kernel.open("IPv4", variant);
    const backend = createIptablesBackend(port, { counters: kernel.counters });
    const groups = Array.from({ length: 300 }, (_, i) =>
      clusterIPGroup(`s${i}`, `10.96.${1 + (i >> 8)}.${i & 255}`, endpoints(2, { from: i * 2 })),
    );
    const [plan, less] = [planOf(groups), planOf(groups.slice(1))];
    await backend.sync(plan);
    expect((await port.list("nat", "KUBE-SERVICES"))?.length).toBe(301);
    await backend.apply(less, changeOf(plan, less));
    await backend.apply(plan, changeOf(less, plan));
    expect((await port.chains("nat")).size).toBe(4 + 5 + 900);
    await backend.cleanup();
    expect([...(await port.chains("nat"))].sort()).toEqual(["INPUT", "OUTPUT", "POSTROUTING", "PREROUTING"]);
  });

  kernelTest("a payload that fails leaves what was there, and the next sync converges", async (kernel) => {
    const port = await kernel.open("IPv4", variant);
    const plan = planOf([founding]);
    const backend = createIptablesBackend(port);
    await backend.sync(plan);
    const before = await saved(port);
    const other = [{ address: "fd00:144::5", port: 80, local: false }];
    await expect(backend.sync(planOf([clusterIPGroup("web", "10.96.0.10", other)]))).rejects.toThrow();
    expect(compareRuleSets(before, await saved(port))).toEqual([]);
    const wanted = planOf([founding, clusterIPGroup("web", "10.96.0.10", endpoints(2))]);
    await backend.sync(wanted);
    expect((await port.list("nat", "KUBE-SERVICES"))?.length).toBe(3);
  });

  kernelTest("a match that the kernel has not, or not for this counter, is left out", async (kernel) => {
    const port = await kernel.open("IPv4", variant);
    const problems: string[] = [];
    const onProblem = (problem: string) => problems.push(problem);
    const backend = createIptablesBackend(port, { counters: async (names) => new Set(names), onProblem });
    await backend.sync(planOf([founding]));
    expect((await port.list("nat", "KUBE-SERVICES"))?.length).toBe(2);
    expect(problems).toEqual([expect.stringContaining("iptables match nfacct: packet counters are disabled")]);
    expect(await port.list("mangle", "KUBE-PROXY-CANARY")).toEqual([]);
  });

  kernelTest("the founding case", async (kernel) => {
    const port = await kernel.open("IPv4", variant);
    await createIptablesBackend(port).sync(planOf([founding]));
    const chain = async (name: string) => (await port.list("nat", name))?.map(renderRule);
    const to = '-d 10.96.67.75/32 -p tcp -m comment --comment "default/nginx-calico cluster IP" -m tcp --dport 80 -j';
    expect(await chain("KUBE-SERVICES")).toContain(`${to} KUBE-SVC-RH2G6EKXTJDCSNM7`);
    expect(await chain("KUBE-SVC-RH2G6EKXTJDCSNM7")).toEqual([
      `! -s 10.144.0.0/16 ${to} KUBE-MARK-MASQ`,
      '-m comment --comment "default/nginx-calico -> 10.144.154.71:80" -j KUBE-SEP-ZMODNQBWAQHJ2KQZ',
    ]);
  });
});

async function saved(port: RulesPort): Promise<RuleSet> {
  const tables = ["filter", "nat", "mangle"] as const;
  return new Map(await Promise.all(tables.map(async (table) => [table, await port.save(table)] as const)));
}

async function iptables({ runner }: TestKernel, port: RulesPort, args: readonly string[]): Promise<void> {
  const tool = port.family === "IPv4" ? "iptables" : "ip6tables";
  await runner.run([`${tool}-${port.variant}`, "-w", "5", ...args]);
}
