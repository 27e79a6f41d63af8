import { FOREIGN_CHAIN, type ForeignRule, foreignRules } from "@fairlead/testkit/foreign";
import { describe, expect } from "vitest";
import { createIptablesBackend } from "../src/index.ts";
import { changeOf, clusterIPGroup, endpoints, planOf } from "./support/groups.ts";
import { kernelTest, type TestKernel } from "./support/real-kernel.ts";

const web = clusterIPGroup("web", "10.96.0.10", endpoints(2));
const more = clusterIPGroup("more", "10.96.0.11", endpoints(1, { from: 10 }));
const [plan, both] = [planOf([web]), planOf([web, more])];

/** Kubelet's, which stays. */
const FIREWALL = /^(?::KUBE-FIREWALL |-A KUBE-FIREWALL |-A (?:IN|OUT)PUT -j KUBE-FIREWALL$).*\n/gm;

describe.each(["nft", "legacy"] as const)("%s: rules of others, whatever their text", (variant) => {
  const tool = `iptables-${variant}`;
  const iptables = (kernel: TestKernel, words: readonly string[]) => kernel.runner.run([tool, "-w", "5", ...words]);

  /** Both tables without the lines that change by themselves. */
  async function saved(kernel: TestKernel): Promise<string> {
    const tables = ["nat", "filter"].map(
      async (table) => (await kernel.runner.run([`${tool}-save`, "-t", table])).stdout,
    );
    return (await Promise.all(tables)).join("").replaceAll(/^# .* on .*\n/gm, "");
  }

  async function add(kernel: TestKernel, where: "-A" | "-I", rules: readonly ForeignRule[]): Promise<void> {
    for (const { table, chain, words } of rules) await iptables(kernel, ["-t", table, where, chain, ...words]);
  }

  /** Bytes that are no text cannot be an argument here. */
  async function addBytes(kernel: TestKernel, table: string, chain: string): Promise<void> {
    const script = `${tool} -w 5 -t ${table} -A ${chain} -m comment --comment "$(printf 'a\\377\\376\\nb')" -j RETURN`;
    await kernel.runner.run(["sh", "-c", script]);
  }

  async function withAll(kernel: TestKernel, where: "-A" | "-I"): Promise<void> {
    for (const table of ["nat", "filter"]) {
      await iptables(kernel, ["-t", table, "-N", FOREIGN_CHAIN]);
      await addBytes(kernel, table, FOREIGN_CHAIN);
      await addBytes(kernel, table, "OUTPUT");
    }
    await add(kernel, where, foreignRules);
  }

  kernelTest(
    "do not stop us: started, changed, written again, cleaned up; and are left as they were",
    async (kernel) => {
      const port = await kernel.open("IPv4", variant);
      await withAll(kernel, "-A");
      const before = await saved(kernel);
      const backend = createIptablesBackend(port);
      await backend.sync(plan);
      expect(await backend.intact(plan)).toBe(true);
      await backend.apply(both, changeOf(plan, both));
      expect(await port.list("nat", "KUBE-SERVICES")).toHaveLength(3);
      expect(await backend.intact(both)).toBe(true);
      await backend.sync(plan);
      expect(await port.list("nat", "KUBE-SERVICES")).toHaveLength(2);
      await backend.cleanup();
      expect((await saved(kernel)).replaceAll(FIREWALL, "")).toEqual(before);
    },
  );

  kernelTest("before ours: each jump stands once, however often everything is written", async (kernel) => {
    const port = await kernel.open("IPv4", variant);
    await createIptablesBackend(port).sync(plan);
    await withAll(kernel, "-I");
    const before = await saved(kernel);
    for (let time = 0; time < 2; time++) await createIptablesBackend(port).sync(plan);
    expect(await saved(kernel)).toEqual(before);
  });

  kernelTest("in chains of ours: they go with the next full sync", async (kernel) => {
    const port = await kernel.open("IPv4", variant);
    const backend = createIptablesBackend(port);
    await backend.sync(plan);
    const before = await saved(kernel);
    const rules = foreignRules.filter(({ chain }) => chain === FOREIGN_CHAIN);
    const [service = ""] = [...(await port.chains("nat"))].filter((chain) => chain.startsWith("KUBE-SVC-"));
    for (const chain of ["KUBE-SERVICES", "KUBE-POSTROUTING", service]) {
      await add(
        kernel,
        "-A",
        rules.filter(({ table }) => table === "nat").map((rule) => ({ ...rule, chain })),
      );
    }
    for (const chain of ["KUBE-SERVICES", "KUBE-FORWARD"]) {
      await add(
        kernel,
        "-A",
        rules.filter(({ table }) => table === "filter").map((rule) => ({ ...rule, chain })),
      );
    }
    await backend.sync(plan);
    expect(await saved(kernel)).toEqual(before);
  });
});
