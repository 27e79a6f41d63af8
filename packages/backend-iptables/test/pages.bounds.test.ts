import { FakeIptables } from "@fairlead/kernel/fake";
import { compareRuleSets } from "@fairlead/netfilter";
import { changeOf } from "@fairlead/testkit/plans";
import { describe, expect, test } from "vitest";
import { createIptablesBackend } from "../src/index.ts";
import { expectOnePage, FLAT, fresh, planWith } from "./support/many-services.ts";
import { RecordingPort } from "./support/recording-port.ts";

/** Sets that need every level of pages: tens of thousands of chains, and as many seconds of processor time. */
describe("changes of a set of 33,000", () => {
  test("lead to the state of a fresh start, through every number of pages and back", async () => {
    const fake = new FakeIptables({ family: "IPv4", variant: "nft" });
    let now = 0;
    // Stale chains wait in large clusters, but not that long.
    const backend = createIptablesBackend(fake, { clock: { monotonic: () => (now += 60_000) } });
    let plan = planWith(FLAT - 1);
    await backend.sync(plan);
    for (const count of [FLAT + 1, 33_000, FLAT + 2, FLAT]) {
      const next = planWith(count, count % 2 === 1);
      await backend.apply(next, changeOf(plan, next));
      plan = next;
    }
    await backend.sync(plan);
    expect(compareRuleSets(await fresh(plan), fake.ruleSet())).toEqual([]);
    await backend.cleanup();
    expect([...(await fake.chains("nat"))].filter((chain) => chain.startsWith("KUBE-"))).toEqual([]);
  });

  test("on the nft variant go in transactions of bounded size, and one more endpoint rewrites one page", async () => {
    const port = new RecordingPort(new FakeIptables({ family: "IPv4", variant: "nft" }));
    const [before, after, more] = [planWith(0), planWith(33_000), planWith(33_001)];
    const backend = createIptablesBackend(port);
    await backend.sync(before);
    port.take();
    await backend.apply(after, changeOf(before, after));
    const names = port
      .take()
      .flat()
      .map(({ commands }) => new Set(commands.map((command) => nameIn(command))).size);
    expect(Math.max(...names)).toBeLessThan(2_000 + 1_024 + 100);
    await backend.apply(more, changeOf(after, more));
    expectOnePage(port, 1_024 + 100);
  });
});

function nameIn(command: object): unknown {
  const { chain, rule } = command as { chain: string; rule?: { target?: { chain?: string } } };
  return rule?.target?.chain ?? chain;
}
