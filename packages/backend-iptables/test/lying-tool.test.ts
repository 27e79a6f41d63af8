import { FakeIptables } from "@fairlead/kernel/fake";
import { expect, test } from "vitest";
import { createIptablesBackend, type RulesPort } from "../src/index.ts";
import { changeOf, clusterIPGroup, endpoints, planOf } from "./support/groups.ts";

const web = clusterIPGroup("web", "10.96.0.10", endpoints(1));
const more = clusterIPGroup("more", "10.96.0.11", endpoints(1, { from: 1 }));
const [one, both] = [planOf([web]), planOf([web, more])];

/** iptables whose restore ends without an error and writes nothing, while it lies; the kernel tells of every write. */
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
    save: (table) => kernel.save(table),
    saveLines: (table) => kernel.saveLines(table),
    chains: (table) => kernel.chains(table),
    list: (table, chain, number) => kernel.list(table, chain, number),
    texts: (table, asked) => kernel.texts(table, asked),
    glance: async () => ({ state: String(generation), ...(variant === "legacy" && { entries: 1000 }) }),
  };
  return { port, tool, kernel };
}

const SAYS = "iptables-restore (IPv4) reported success, but the kernel says that the nat table is as it was before";

test.each(["nft", "legacy"] as const)(
  "%s: a change that a tool says to have written, and has not, is an error",
  async (variant) => {
    const { port, tool } = liar(variant);
    const backend = createIptablesBackend(port);
    await backend.sync(one);
    tool.lies = true;
    await expect(backend.apply(both, changeOf(one, both))).rejects.toThrow(SAYS);
    tool.lies = false;
    expect((await backend.apply(both, changeOf(one, both))).kind).toBe("full");
    expect(await backend.difference(both)).toBeUndefined();
  },
);

test("nft: so is a full sync", async () => {
  const { port, tool } = liar("nft");
  tool.lies = true;
  await expect(createIptablesBackend(port).sync(one)).rejects.toThrow(SAYS);
});

test("legacy: a full sync may find everything there; the next check tells", async () => {
  const { port, tool } = liar("legacy");
  const backend = createIptablesBackend(port);
  tool.lies = true;
  await backend.sync(one);
  expect(await backend.difference(one)).toBeDefined();
  tool.lies = false;
  await backend.sync(one);
  for (let time = 0; time < 2; time++) {
    expect(await backend.difference(one)).toBeUndefined();
    await backend.sync(one);
  }
});

test("an endpoint that takes another's place is a change like others", async () => {
  const { port } = liar("legacy");
  const backend = createIptablesBackend(port);
  await backend.sync(one);
  const moved = planOf([clusterIPGroup("web", "10.96.0.10", endpoints(1, { from: 9 }))]);
  expect((await backend.apply(moved, changeOf(one, moved))).kind).toBe("partial");
});
