import { createIpset, openIptables } from "@fairlead/kernel";
import { FOREIGN_CHAIN, foreignRulesOf, scriptOf } from "@fairlead/testkit/foreign";
import { changeOf, clusterIPGroup, nodePlan, planOf } from "@fairlead/testkit/plans";
import { kernelTest } from "@fairlead/testkit/real-kernel";
import { expect } from "vitest";
import { createIpvsBackend } from "../src/index.ts";
import { FakeNode } from "./support/fake-node.ts";

function plans(address: string, pod: string) {
  const [node, endpoints] = [nodePlan({ kind: "none" }), [{ address: pod, port: 8080, local: true }]];
  const served = clusterIPGroup("web", address, endpoints, { onNode: endpoints });
  return [planOf([clusterIPGroup("web", address, [])], node), planOf([served], node)] as const;
}

const PLANS = { IPv4: plans("10.96.0.10", "10.144.0.5"), IPv6: plans("fd00:10:96::10", "fd00:144::5") } as const;

/** Rules and sets are the kernel's; virtual servers and addresses, which have no comments, are in memory. */
for (const [variant, family] of [
  ["nft", "IPv4"],
  ["nft", "IPv6"],
  ["legacy", "IPv4"],
  ["legacy", "IPv6"],
] as const) {
  kernelTest(
    `${variant}, ${family}: rules of others, whatever their text, do not stop us and are left as they were`,
    async ({ runner }) => {
      const tool = `${family === "IPv4" ? "iptables" : "ip6tables"}-${variant}`;
      const iptables = (...words: readonly string[]) => runner.run([tool, "-w", "5", ...words]);
      const saved = async (table: string) =>
        (await runner.run([`${tool}-save`, "-t", table])).stdout.replaceAll(/^# .* on .*\n/gm, "");
      for (const table of ["nat", "filter"]) await iptables("-t", table, "-N", FOREIGN_CHAIN);
      await runner.run(["sh"], { input: scriptOf(tool, "-A", foreignRulesOf(family)) });
      const before = [await saved("nat"), await saved("filter")];

      const { servers, links } = new FakeNode().port(family);
      const rules = await openIptables(runner, { family, variant });
      const port = { servers, links, rules, sets: createIpset(runner) };
      const backend = createIpvsBackend(port);
      const [one, two] = PLANS[family];
      await backend.sync(one);
      expect(await backend.difference(one)).toBeUndefined();
      await backend.apply(two, changeOf(one, two));
      expect(await backend.difference(two)).toBeUndefined();
      await createIpvsBackend(port).sync(two);
      expect(await backend.difference(two)).toBeUndefined();
      expect((await saved("nat")).match(/portals" -j KUBE-SERVICES$/gm)).toHaveLength(2);
      await backend.cleanup();
      expect([await saved("nat"), await saved("filter")]).toEqual(before);
    },
  );
}
