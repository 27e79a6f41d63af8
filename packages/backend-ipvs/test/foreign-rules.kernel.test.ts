import type { ServicePortGroup } from "@fairlead/core";
import { createIpset, createRunner, openIptables } from "@fairlead/kernel";
import { createNamespace, namespaceSupport } from "@fairlead/kernel/netns";
import { FOREIGN_CHAIN, foreignRulesOf, scriptOf } from "@fairlead/testkit/foreign";
import { expect, test } from "vitest";
import { createIpvsBackend } from "../src/index.ts";
import { FakeNode } from "./support/fake-node.ts";
import { changeOf, clusterIPGroup, planOf } from "./support/world.ts";

const support = await namespaceSupport();
const reason = support.ok ? "" : support.reason;

/** A service, and the same with another endpoint, which is on this node. */
const GROUPS = {
  IPv4: [clusterIPGroup("10.96.0.10", []), onNode("10.96.0.10", "10.144.0.5")],
  IPv6: [clusterIPGroup("fd00:10:96::10", []), onNode("fd00:10:96::10", "fd00:144::5")],
} as const;

function onNode(service: string, address: string): ServicePortGroup {
  const endpoints = [{ address, port: 8080, local: true }];
  return { ...clusterIPGroup(service, endpoints), onNode: endpoints };
}

/** Rules and sets are the kernel's; virtual servers and addresses, which have no comments, are in memory. */
test.for([
  ["nft", "IPv4"],
  ["nft", "IPv6"],
  ["legacy", "IPv4"],
  ["legacy", "IPv6"],
] as const)(
  "%s, %s: rules of others, whatever their text, do not stop us and are left as they were",
  async ([variant, family], { skip }) => {
    if (reason !== "") {
      if (process.env["CI"]) throw new Error(`CI must run this: ${reason}`);
      skip(reason);
    }
    await using namespace = await createNamespace();
    const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
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
    const [one, two] = GROUPS[family];
    await backend.sync(planOf(one));
    expect(await backend.difference(planOf(one))).toBeUndefined();
    await backend.apply(planOf(two), changeOf(one, two));
    expect(await backend.difference(planOf(two))).toBeUndefined();
    await createIpvsBackend(port).sync(planOf(two));
    expect(await backend.difference(planOf(two))).toBeUndefined();
    expect((await saved("nat")).match(/portals" -j KUBE-SERVICES$/gm)).toHaveLength(2);
    await backend.cleanup();
    expect([await saved("nat"), await saved("filter")]).toEqual(before);
  },
);
