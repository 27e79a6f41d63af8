import { FakeIptables } from "@fairlead/kernel/fake";
import { expect, test } from "vitest";
import { FakeSockets } from "../src/fake/index.ts";
import { createUserspaceBackend, type RulesPort } from "../src/index.ts";
import { World } from "./support/world.ts";

/** iptables whose restore ends without an error and writes nothing, while it lies. */
function liar() {
  const kernel = new FakeIptables({ family: "IPv4", variant: "nft" });
  const tool = { lies: false };
  let generation = 0;
  const port: RulesPort = {
    family: "IPv4",
    variant: "nft",
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
    glance: async () => ({ state: String(generation) }),
  };
  return { port, tool };
}

test("a change that was not written is an error at once", async () => {
  const { port, tool } = liar();
  const backend = createUserspaceBackend(port, { open: new FakeSockets().open });
  const world = new World();
  await backend.sync(world.plan());
  tool.lies = true;
  const change = world.change([[1, { endpoints: [] }]]);
  await expect(change && backend.apply(world.plan(), change)).rejects.toThrow(
    "iptables-restore (IPv4) reported success, but the kernel's rules are as they were before",
  );
  tool.lies = false;
  await backend.sync(world.plan());
  expect(await backend.difference(world.plan())).toBeUndefined();
});

test("so is a full sync", async () => {
  const { port, tool } = liar();
  tool.lies = true;
  const backend = createUserspaceBackend(port, { open: new FakeSockets().open });
  await expect(backend.sync(new World().plan())).rejects.toThrow("reported success");
});
