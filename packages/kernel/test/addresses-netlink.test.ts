import { expect, test } from "vitest";
import { FakeRunner } from "../src/fake/index.ts";
import { createNodeAddresses } from "../src/index.ts";

test("where netlink cannot be had they come from `ip`", async () => {
  const runner = new FakeRunner({
    ip: () =>
      '[{"ifname":"lo","flags":["UP"],"addr_info":[{"family":"inet","local":"127.0.0.1","prefixlen":8,"scope":"host"}]}]',
  });
  const open = () => Promise.reject(new Error("no binary"));
  const [only, ...others] = await createNodeAddresses(runner, { open }).list();
  expect([only?.address, only?.scope, only?.up, others]).toEqual(["127.0.0.1", "host", true, []]);
});
