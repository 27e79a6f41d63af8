import { Followed, follow, until, VirtualClock } from "@fairlead/base/testing";
import { expect } from "vitest";
import { createNodeAddresses, openRouteSocket, type ServiceDeviceChange } from "../src/index.ts";
import { netlinkIn } from "../src/netns/index.ts";
import { insideTest, noProcess } from "./kernel-test.ts";

/** Devices that are up and down, other scopes, the other end of a tunnel, and what kube-ipvs0 has. */
const COMMANDS = [
  "link set lo up",
  "link add a0 type veth peer name a1",
  "link add kube-ipvs0 type veth peer name b1",
  // Otherwise link-local addresses come some time after the devices are up.
  "link set a0 addrgenmode none",
  "link set a1 addrgenmode none",
  "link set a0 up",
  "link set a1 up",
  "address add 192.0.2.1/24 dev a0",
  "address add 192.0.2.2/32 dev a0",
  "address add 192.0.2.3 peer 198.51.100.3/32 dev a0",
  "address add 2001:db8::1/64 dev a0 nodad",
  "address add fe80::1/64 dev a0 nodad",
  "address add 192.0.2.9/32 scope host dev a1",
  "address add 192.0.2.10/32 scope 77 dev a1",
  "address add 192.0.2.77/24 dev b1",
  "address add 10.96.0.1/32 dev kube-ipvs0",
].join("\n");

insideTest("the node's addresses by netlink are those that `ip` lists, in its order", async ({ runner }) => {
  await runner.run(["ip", "-batch", "-"], { input: `${COMMANDS}\n` });
  const byNetlink = await createNodeAddresses(noProcess, { open: openRouteSocket }).list();
  const listed = await createNodeAddresses(runner).list();
  expect(byNetlink).toEqual(listed);
  expect(listed.filter(({ family }) => family === "IPv4").map(({ address }) => address)).toContain("192.0.2.3");
  expect(new Set(listed.map(({ up }) => up))).toEqual(new Set([true, false]));
});

const SETTLE_MS = 100;

insideTest("changes are seen, those that come together once", async ({ namespace, runner, signal }) => {
  const clock = new VirtualClock();
  const { routeListening: listen, route: open } = netlinkIn(namespace);
  const addresses = createNodeAddresses(runner, { settleMs: SETTLE_MS, timers: clock, listen, open });
  await runner.run(["ip", "link", "add", "eth0", "type", "veth", "peer", "name", "kube-ipvs0"]);
  await runner.run(["ip", "addr", "add", "192.0.2.1/24", "dev", "eth0"]);
  await using lists = follow(signal, (stop) => addresses.watch({ signal: stop }));
  await lists.until((seen) => seen.length > 0);
  // It listens before it first waits.
  await clock.timer(() => true);
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
});

insideTest("what becomes of kube-ipvs0 is reported, its end last", async ({ namespace, runner, signal }) => {
  const { routeListening: listen, route: open } = netlinkIn(namespace);
  const clock = new VirtualClock();
  const addresses = createNodeAddresses(runner, { listen, open, timers: clock });
  const reports = new Followed<ServiceDeviceChange>(signal);
  const onServiceDevice = (change: ServiceDeviceChange) => reports.add(change);
  await using lists = follow(signal, (stop) => addresses.watch({ signal: stop, onServiceDevice }));
  // It listens before it first waits.
  await clock.timer(() => true);
  await runner.run(["ip", "link", "add", "kube-ipvs0", "type", "veth", "peer", "name", "x"]);
  for (const address of ["10.96.0.1/32", "fd00:96::1/128"])
    await runner.run(["ip", "addr", "add", address, "dev", "kube-ipvs0"]);
  await runner.run(["ip", "addr", "del", "10.96.0.1/32", "dev", "kube-ipvs0"]);
  await runner.run(["ip", "link", "del", "kube-ipvs0"]);
  const isEnd = ({ address, gone }: ServiceDeviceChange) => address === undefined && gone;
  await until(signal, () => reports.seen.some(isEnd), clock);
  const changes = reports.seen;
  expect(changes.findIndex(isEnd)).toBe(changes.length - 1);
  expect(changes).toEqual(
    expect.arrayContaining([
      { address: "10.96.0.1", gone: false },
      { address: "10.96.0.1", gone: true },
      { address: "fd00:96::1", gone: false },
    ]),
  );
  await lists.stop();
});
