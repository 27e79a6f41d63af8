import { follow, until, VirtualClock } from "@fairlead/base/testing";
import { expect } from "vitest";
import { createNodeAddresses, createRunner, type NodeAddressesOptions, type Runner } from "../src/index.ts";
import { createNamespace, type NetworkNamespace, netlinkIn } from "../src/netns/index.ts";
import { kernelTest } from "./kernel-test.ts";

const SETTLE_MS = 100;

/** How changes are learned of, and how to wait until they are. */
interface Way {
  options(namespace: NetworkNamespace): NodeAddressesOptions;
  listening(clock: VirtualClock, runner: Runner, signal: AbortSignal): Promise<unknown>;
}

const byTool: Way = {
  options: () => ({}),
  // `ip monitor` does not say when it has begun to listen: an address comes and goes until that is reported.
  listening: (clock, { run }, signal) =>
    until(signal, async () => {
      for (const verb of ["add", "del"]) await run(["ip", "addr", verb, "192.0.2.9/32", "dev", "lo"]);
      return clock.pending.includes(SETTLE_MS);
    }),
};

const byNetlink: Way = {
  options(namespace) {
    const { routeListening, route } = netlinkIn(namespace);
    return { listen: routeListening, open: route };
  },
  // It listens before it first waits.
  listening: (clock) => clock.timer(() => true),
};

kernelTest("changes are seen by ip, those that come together once", ({ signal }) => seesChanges(signal, byTool));
kernelTest("and so by netlink", ({ signal }) => seesChanges(signal, byNetlink));

async function seesChanges(signal: AbortSignal, { options, listening }: Way): Promise<void> {
  await using namespace = await createNamespace();
  const runner = createRunner({ prefix: namespace.argvPrefix });
  const clock = new VirtualClock();
  const addresses = createNodeAddresses(runner, { settleMs: SETTLE_MS, timers: clock, ...options(namespace) });
  await runner.run(["ip", "link", "add", "eth0", "type", "veth", "peer", "name", "kube-ipvs0"]);
  await runner.run(["ip", "addr", "add", "192.0.2.1/24", "dev", "eth0"]);
  await using lists = follow(signal, (stop) => addresses.watch({ signal: stop }));
  await lists.until((seen) => seen.length > 0);
  await listening(clock, runner, signal);
  await runner.run(["ip", "addr", "add", "10.96.0.1/32", "dev", "kube-ipvs0"]);
  for (const last of [2, 3]) await runner.run(["ip", "addr", "add", `192.0.2.${last}/24`, "dev", "eth0"]);
  await until(signal, () => lists.seen.length > 1, clock);
  await clock.advance(10 * SETTLE_MS);
  const before = ["127.0.0.1", "::1", "192.0.2.1"];
  expect(lists.seen.map((list) => list.map(({ address }) => address))).toEqual([
    before,
    [...before, "192.0.2.2", "192.0.2.3"],
  ]);
  await lists.stop();
}
