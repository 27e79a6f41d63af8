import { FakeIptables } from "@fairlead/kernel/fake";
import { changeOf, clusterIPGroup, endpoints, planOf } from "@fairlead/testkit/plans";
import { expect, test } from "vitest";
import { createIptablesBackend } from "../src/index.ts";
import { fresh, manyServices, syncUntilTaken } from "./support/many-services.ts";

const web = clusterIPGroup("web", "10.96.0.10", endpoints(1));
const more = clusterIPGroup("more", "10.96.0.11", endpoints(1, { from: 1 }));
const [one, both] = [planOf([web]), planOf([web, more])];

/** iptables whose restore ends without an error and writes nothing, while it lies. */
function liar(variant: "nft" | "legacy") {
  const kernel = new FakeIptables({ family: "IPv4", variant, glances: true });
  return { kernel, backend: createIptablesBackend(kernel) };
}

const SAYS = "iptables-restore (IPv4) reported success, but the kernel's rules are as they were before";

test("nft: a change that a tool says to have written, and has not, is an error", async () => {
  const { backend, kernel } = liar("nft");
  await backend.sync(one);
  kernel.lies = true;
  await expect(backend.apply(both, changeOf(one, both))).rejects.toThrow(SAYS);
  kernel.lies = false;
  expect((await backend.apply(both, changeOf(one, both))).kind).toBe("full");
  expect(await backend.difference(both)).toBeUndefined();
});

test("nft: so is a full sync", async () => {
  const { backend, kernel } = liar("nft");
  kernel.lies = true;
  await expect(backend.sync(one)).rejects.toThrow(SAYS);
});

test.each(["sync", "apply"] as const)("legacy: %s: the next check finds it", async (call) => {
  const { backend, kernel } = liar("legacy");
  await backend.sync(one);
  expect(await backend.difference(one)).toBeUndefined();
  kernel.lies = true;
  await (call === "sync" ? backend.sync(both) : backend.apply(both, changeOf(one, both)));
  kernel.lies = false;
  expect(await backend.difference(both)).toEqual({
    what: ["chain KUBE-SERVICES of the nat table lacks rules"],
    // The chains of the service are missing as well.
    repaired: false,
  });
  await backend.sync(both);
  expect(await backend.difference(both)).toBeUndefined();
});

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
