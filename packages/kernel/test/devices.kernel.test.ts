import { systemClock } from "@fairlead/base";
import { follow } from "@fairlead/base/testing";
import { expect } from "vitest";
import { createDeviceFollower, type NetworkDevice, openRouteListening, openRouteSocket } from "../src/index.ts";
import { insideTest } from "./kernel-test.ts";

const BEFORE = [
  "link set lo up",
  "link add br0 type bridge",
  "link add cali1 type veth peer name peer1",
  "link add up0 type veth peer name peer2",
  "link set cali1 up",
  "link set peer1 up",
  "link set up0 up",
  "link set peer2 up",
  "address add 10.144.1.1/24 dev br0",
  "address add 172.30.0.1/24 dev up0",
  "route add default via 172.30.0.2 dev up0",
  "route add 10.144.2.7/32 dev cali1",
  "route add fd00:144::7/128 dev cali1",
  "route add 10.99.0.0/16 dev up0 table 100",
];

/** Another routing table's, which are not of interest. */
const ELSEWHERE = "10.99.0.0/16";

type Devices = readonly NetworkDevice[];

const has = (list: readonly string[] = [], ...wanted: readonly string[]) => wanted.every((one) => list.includes(one));

insideTest(
  "devices are followed with their routes and addresses, which may come later, and as they go and come back",
  async ({ runner, signal }) => {
    const ip = (commands: readonly string[]) =>
      runner.run(["ip", "-batch", "-"], { input: `${commands.join("\n")}\n` });
    await ip(BEFORE);
    const follower = createDeviceFollower({ listen: openRouteListening, open: openRouteSocket, timers: systemClock });
    await using followed = follow(signal, (stop) => follower.follow(stop, { networks: true }));
    const named = (seen: readonly Devices[], name: string) => seen.at(-1)?.find((device) => device.name === name);
    await followed.until((seen) => {
      const { kind, routes } = named(seen, "cali1") ?? {};
      return kind === "veth" && has(routes, "10.144.2.7/32", "fd00:144::7/128");
    });
    await followed.until((seen) => {
      const { kind, addresses } = named(seen, "br0") ?? {};
      return kind === "bridge" && has(addresses, "10.144.1.1");
    });
    await followed.until((seen) => has(named(seen, "up0")?.routes, "0.0.0.0/0", "172.30.0.0/24"));
    await ip(["route add 10.144.2.8/32 dev cali1"]);
    const { index } = await followed.until((seen) => {
      const device = named(seen, "cali1");
      return has(device?.routes, "10.144.2.8/32") && device;
    });
    const before = followed.seen.length;
    await ip([
      "link delete cali1",
      `link add cali1 index ${index} type veth peer name peer1`,
      "link add end type bridge",
    ]);
    await followed.until((seen) => named(seen, "end") !== undefined && named(seen, "cali1")?.index === index);
    const names = (devices: Devices) => devices.map(({ name }) => name);
    expect(followed.seen.slice(before).map(names)).toContainEqual(expect.not.arrayContaining(["cali1"]));
    expect(followed.seen.flat().flatMap(({ routes = [] }) => routes)).not.toContain(ELSEWHERE);
  },
);
