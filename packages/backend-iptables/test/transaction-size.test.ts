import { FakeIptables } from "@fairlead/kernel/fake";
import { expect, test } from "vitest";
import { createIptablesBackend } from "../src/index.ts";
import { changeOf } from "./support/groups.ts";
import { fresh } from "./support/large-sets.ts";
import { manyServices, syncUntilTaken } from "./support/many-services.ts";

test("where the kernel takes small transactions only, all of a full sync is cut: chains, dispatch and refusals", async () => {
  const fake = new FakeIptables({ family: "IPv4", room: 2_000 });
  const backend = createIptablesBackend(fake);
  const plan = manyServices({ served: 100, without: 50 });
  const refused = await syncUntilTaken(backend, plan);
  expect(fake.ruleSet()).toEqual(await fresh(plan));
  expect(refused).toBeLessThan(10);
});

test("a change after it is taken at once, and so is a cleanup", async () => {
  const fake = new FakeIptables({ family: "IPv4", room: 2_000 });
  const backend = createIptablesBackend(fake);
  const before = manyServices({ served: 100, without: 0 });
  await syncUntilTaken(backend, before);
  const after = manyServices({ served: 40, without: 0 });
  await backend.apply(after, changeOf(before, after));
  expect(fake.ruleSet()).toEqual(await fresh(after));
  await backend.cleanup();
  expect([...(await fake.chains("nat"))].filter((chain) => chain.startsWith("KUBE-"))).toEqual([]);
});
