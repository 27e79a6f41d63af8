import { compareRuleSets } from "@fairlead/netfilter";
import { expect } from "vitest";
import { createIptablesBackend } from "../src/index.ts";
import { changeOf } from "./support/groups.ts";
import { FLAT, fresh, planWith } from "./support/many-services.ts";
import { kernelTest } from "./support/real-kernel.ts";

kernelTest("a large set on the real kernel: comes, grows, shrinks and goes", async (kernel) => {
  const port = await kernel.open("IPv4", "nft");
  let now = 0;
  const backend = createIptablesBackend(port, { clock: { monotonic: () => (now += 60_000) } });
  let plan = planWith(10);
  await backend.sync(plan);
  for (const count of [FLAT + 1_000, FLAT + 1_001, 3]) {
    const next = planWith(count, true);
    await backend.apply(next, changeOf(plan, next));
    plan = next;
  }
  const wanted = new Map([...(await fresh(plan))].filter(([table]) => table === "nat"));
  expect(compareRuleSets(wanted, new Map([["nat", await port.save("nat")]]))).toEqual([]);
  await backend.cleanup();
  expect([...(await port.chains("nat"))].filter((chain) => chain.startsWith("KUBE-"))).toEqual([]);
});
