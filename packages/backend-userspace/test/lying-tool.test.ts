import { FakeIptables } from "@fairlead/kernel/fake";
import { renderRule } from "@fairlead/netfilter";
import { expect, test } from "vitest";
import { FakeSockets } from "../src/fake/index.ts";
import { createUserspaceBackend, type RulesPort } from "../src/index.ts";
import { World } from "./support/world.ts";

/** iptables whose restore ends without an error and writes nothing, while it lies. */
function liar(variant: "nft" | "legacy") {
  const kernel = new FakeIptables({ family: "IPv4", variant });
  const tool = { lies: false };
  let generation = 0;
  const port: RulesPort = {
    family: "IPv4",
    variant,
    restore: async (payload) => {
      if (tool.lies) {
        for await (const _ of payload);
        return;
      }
      await kernel.restore(payload);
      generation++;
    },
    chains: (table) => kernel.chains(table),
    list: (table, chain) => kernel.list(table, chain),
    texts: (table, asked) => kernel.texts(table, asked),
    glance: async (table) => {
      const chains = [...kernel.table(table).chains.values()];
      const texts = chains.flatMap(({ name, rules }) => [name, ...rules.map(renderRule)]);
      return variant === "nft" ? { state: String(generation) } : { state: texts.join("\n"), entries: texts.length };
    },
  };
  return { port, tool };
}

test.each(["nft", "legacy"] as const)("%s: a change that was not written is an error at once", async (variant) => {
  const { port, tool } = liar(variant);
  const backend = createUserspaceBackend(port, { open: new FakeSockets().open });
  const world = new World();
  await backend.sync(world.plan());
  tool.lies = true;
  const change = world.change([[1, { endpoints: [] }]]);
  await expect(change && backend.apply(world.plan(), change)).rejects.toThrow(
    "iptables-restore (IPv4) reported success, but the kernel says that the filter table is as it was before",
  );
  tool.lies = false;
  await backend.sync(world.plan());
  expect(await backend.difference(world.plan())).toBeUndefined();
});

test("nft: so is a full sync", async () => {
  const { port, tool } = liar("nft");
  tool.lies = true;
  const backend = createUserspaceBackend(port, { open: new FakeSockets().open });
  await expect(backend.sync(new World().plan())).rejects.toThrow("reported success");
});
