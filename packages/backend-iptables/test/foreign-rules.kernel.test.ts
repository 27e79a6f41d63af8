import { openIptables } from "@fairlead/kernel";
import { FOREIGN_CHAIN, type ForeignRule, foreignRules, foreignRulesOf, scriptOf } from "@fairlead/testkit/foreign";
import { changeOf, clusterIPGroup, endpoints, nodePlan, planOf } from "@fairlead/testkit/plans";
import { kernelTest, type TestKernel } from "@fairlead/testkit/real-kernel";
import { describe, expect } from "vitest";
import { createIptablesBackend } from "../src/index.ts";

const web = clusterIPGroup("web", "10.96.0.10", endpoints(2));
const more = clusterIPGroup("more", "10.96.0.11", endpoints(1, { from: 10 }));
const [plan, both] = [planOf([web]), planOf([web, more])];

const six = (name: string, address: string, pod: string) =>
  clusterIPGroup(name, address, [{ address: pod, port: 8080, local: false }], { family: "IPv6" });
const node = nodePlan({ kind: "cidrs", cidrs: ["fd00:144::/48"] });
const webSix = six("web", "fd00:10:96::10", "fd00:144::5");
const bothSix = planOf([webSix, six("more", "fd00:10:96::11", "fd00:144::6")], node);
const plans = { IPv4: { plan, both }, IPv6: { plan: planOf([webSix], node), both: bothSix } } as const;

/** Kubelet's, which stays. */
const FIREWALL = /^(?::KUBE-FIREWALL |-A KUBE-FIREWALL |-A (?:IN|OUT)PUT -j KUBE-FIREWALL$).*\n/gm;

type Family = keyof typeof plans;

function rulesOf(kernel: TestKernel, variant: "nft" | "legacy", family: Family = "IPv4") {
  const tool = `${family === "IPv4" ? "iptables" : "ip6tables"}-${variant}`;
  const iptables = (words: readonly string[]) => kernel.runner.run([tool, "-w", "5", ...words]);

  const add = async (where: "-A" | "-I", rules: readonly ForeignRule[]): Promise<void> => {
    await kernel.runner.run(["sh"], { input: scriptOf(tool, where, rules) });
  };
  /** Bytes that are no text cannot be an argument here. */
  const addBytes = async (table: string, chain: string): Promise<void> => {
    const script = `${tool} -w 5 -t ${table} -A ${chain} -m comment --comment "$(printf 'a\\377\\376\\nb')" -j RETURN`;
    await kernel.runner.run(["sh", "-c", script]);
  };
  return {
    add,
    async addAll(where: "-A" | "-I"): Promise<void> {
      for (const table of ["nat", "filter"]) {
        await iptables(["-t", table, "-N", FOREIGN_CHAIN]);
        await addBytes(table, FOREIGN_CHAIN);
        await addBytes(table, "OUTPUT");
      }
      await add(where, foreignRulesOf(family));
    },
    /** Both tables without the lines that change by themselves. */
    async saved(): Promise<string> {
      const tables = ["nat", "filter"].map(
        async (table) => (await kernel.runner.run([`${tool}-save`, "-t", table])).stdout,
      );
      return (await Promise.all(tables)).join("").replaceAll(/^# .* on .*\n/gm, "");
    },
  };
}

describe.each(["nft", "legacy"] as const)("%s: rules of others, whatever their text", (variant) => {
  for (const family of ["IPv4", "IPv6"] as const) {
    kernelTest(
      `${family}: do not stop us: started, changed, written again, cleaned up; and are left as they were`,
      async (kernel) => {
        const { addAll, saved } = rulesOf(kernel, variant, family);
        const { plan, both } = plans[family];
        const port = await openIptables(kernel.runner, { family, variant });
        await addAll("-A");
        const before = await saved();
        const backend = createIptablesBackend(port);
        await backend.sync(plan);
        expect(await backend.difference(plan)).toBeUndefined();
        await backend.apply(both, changeOf(plan, both));
        expect(await port.list("nat", "KUBE-SERVICES")).toHaveLength(3);
        expect(await backend.difference(both)).toBeUndefined();
        await backend.sync(plan);
        expect(await port.list("nat", "KUBE-SERVICES")).toHaveLength(2);
        await backend.cleanup();
        expect((await saved()).replaceAll(FIREWALL, "")).toEqual(before);
      },
    );
  }

  kernelTest("before ours: each jump stands once, however often everything is written", async (kernel) => {
    const { addAll, saved } = rulesOf(kernel, variant);
    const port = await openIptables(kernel.runner, { family: "IPv4", variant });
    await createIptablesBackend(port).sync(plan);
    await addAll("-I");
    const before = await saved();
    for (let time = 0; time < 2; time++) await createIptablesBackend(port).sync(plan);
    expect(await saved()).toEqual(before);
  });

  kernelTest("in chains of ours: they go with the next full sync", async (kernel) => {
    const { add, saved } = rulesOf(kernel, variant);
    const port = await openIptables(kernel.runner, { family: "IPv4", variant });
    const backend = createIptablesBackend(port);
    await backend.sync(plan);
    const before = await saved();
    const rules = foreignRules.filter(({ chain }) => chain === FOREIGN_CHAIN);
    const [service = ""] = [...(await port.chains("nat"))].filter((chain) => chain.startsWith("KUBE-SVC-"));
    for (const chain of ["KUBE-SERVICES", "KUBE-POSTROUTING", service]) {
      await add(
        "-A",
        rules.filter(({ table }) => table === "nat").map((rule) => ({ ...rule, chain })),
      );
    }
    for (const chain of ["KUBE-SERVICES", "KUBE-FORWARD"]) {
      await add(
        "-A",
        rules.filter(({ table }) => table === "filter").map((rule) => ({ ...rule, chain })),
      );
    }
    await backend.sync(plan);
    expect(await saved()).toEqual(before);
  });
});
