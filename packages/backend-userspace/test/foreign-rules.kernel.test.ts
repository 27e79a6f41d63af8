import { createRunner, openIptables } from "@fairlead/kernel";
import { createNamespace, namespaceSupport } from "@fairlead/kernel/netns";
import { FOREIGN_CHAIN, foreignRules, scriptOf } from "@fairlead/testkit/foreign";
import { expect, test } from "vitest";
import { FakeSockets } from "../src/fake/index.ts";
import { createUserspaceBackend } from "../src/index.ts";
import { World } from "./support/world.ts";

const support = await namespaceSupport();
const reason = support.ok ? "" : support.reason;

test.for(["nft", "legacy"] as const)(
  "%s: rules of others, whatever their text, do not stop us and are left as they were",
  async (variant, { skip }) => {
    if (reason !== "") {
      if (process.env["CI"]) throw new Error(`CI must run this: ${reason}`);
      skip(reason);
    }
    await using namespace = await createNamespace();
    const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
    const iptables = (...words: readonly string[]) => runner.run([`iptables-${variant}`, "-w", "5", ...words]);
    const saved = async (table: string) =>
      (await runner.run([`iptables-${variant}-save`, "-t", table])).stdout.replaceAll(/^# .* on .*\n/gm, "");
    for (const table of ["nat", "filter"]) await iptables("-t", table, "-N", FOREIGN_CHAIN);
    await runner.run(["sh"], { input: scriptOf(`iptables-${variant}`, "-A", foreignRules) });
    const before = [await saved("nat"), await saved("filter")];

    const port = await openIptables(runner, { family: "IPv4", variant });
    const backend = createUserspaceBackend(port, { open: new FakeSockets().open });
    const plan = new World().plan();
    for (let time = 0; time < 2; time++) {
      await backend.sync(plan);
      expect(await backend.difference(plan)).toBeUndefined();
    }
    expect((await saved("nat")).match(/-j KUBE-PORTALS-HOST$/gm)).toHaveLength(1);
    await backend.cleanup();
    expect([await saved("nat"), await saved("filter")]).toEqual(before);
  },
);
