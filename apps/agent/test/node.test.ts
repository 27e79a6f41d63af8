import { FakeNodeAddresses } from "@fairlead/kernel/fake";
import { expect, test } from "vitest";
import { followAddresses } from "../src/node/follow-addresses.ts";
import { address } from "./support/running-agent.ts";

test("without a default route: the first address for others on an interface that is up", async () => {
  const addresses = new FakeNodeAddresses([
    address("127.0.0.1", "host"),
    { ...address("192.0.2.1"), up: false },
    address("169.254.1.1", "link"),
    address("10.201.0.10"),
    address("10.201.0.11"),
  ]);
  const stop = new AbortController();
  const found: unknown[] = [];
  const sourceAddress = async (family: string) => (family === "IPv6" ? "fd00:201::10" : undefined);
  await followAddresses({ addresses, sourceAddress }, { signal: stop.signal }, (_all, ips) => {
    found.push(ips);
    stop.abort();
  });
  expect(found).toEqual([{ IPv4: "10.201.0.10", IPv6: "fd00:201::10" }]);
});
