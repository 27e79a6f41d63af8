import { familyOf } from "@fairlead/base";
import { settled, VirtualClock } from "@fairlead/base/testing";
import { describe, expect, test } from "vitest";
import { interfaceAddresses, parseAddresses, parseMonitorLine } from "../src/address-monitor.ts";
import { type AddressChange, isNodeChange } from "../src/addresses.ts";
import { FakeNodeAddresses, FakeRunner } from "../src/fake/index.ts";
import { createNodeAddresses, NetlinkError, type NodeAddress, type NodeAddresses } from "../src/index.ts";
import { TYPES } from "../src/links.ts";
import type { ListeningSocket } from "../src/netlink/listening.ts";
import type { OpenNetlink } from "../src/netlink/socket.ts";
import { answered, done as dumpDone } from "./netlink/scripted.ts";

const eth0 = (address: string): NodeAddress => ({
  family: familyOf(address),
  address,
  prefixLength: 24,
  interface: "eth0",
  scope: "global",
  up: true,
});

/** As `ip -json address` prints them. */
function json(addresses: readonly NodeAddress[]): string {
  const links = addresses.map(({ family, address, prefixLength, interface: ifname, scope, up }) => ({
    ifname,
    flags: up ? ["BROADCAST", "UP"] : ["BROADCAST"],
    addr_info: [{ family: family === "IPv4" ? "inet" : "inet6", local: address, prefixlen: prefixLength, scope }],
  }));
  return JSON.stringify(links);
}

const ETH0_LINE: AddressChange = { device: "eth0", gone: false, address: "192.0.2.1" };

describe("parse", () => {
  test("addresses of all devices but kube-ipvs0", () => {
    const all = [eth0("192.0.2.1"), eth0("2001:db8::1"), { ...eth0("192.0.2.2"), interface: "eth1", up: false }];
    const services = { ...eth0("10.96.0.1"), interface: "kube-ipvs0" };
    expect(parseAddresses(json([...all, services]))).toEqual(all);
  });

  test("what a filter or another version leaves out is passed over", () => {
    expect(parseAddresses('[{"ifname":"lo","addr_info":[{},{"family":"inet"}]},{},{"ifname":"x"}]')).toEqual([]);
    expect(parseAddresses("")).toEqual([]);
  });

  test.for<[string, AddressChange | undefined]>([
    ["2: eth0    inet 192.0.2.1/24 scope global eth0\\       valid_lft forever", ETH0_LINE],
    ["Deleted 2: eth0    inet 192.0.2.1/24 scope global eth0\\       valid_lft forever", { ...ETH0_LINE, gone: true }],
    [
      "Deleted 7: kube-ipvs0    inet6 fd00:96::1/128 scope global \\  valid_lft forever",
      { device: "kube-ipvs0", gone: true, address: "fd00:96::1" },
    ],
    [
      "Deleted 7: kube-ipvs0: <BROADCAST,NOARP> mtu 1500 qdisc noop state DOWN group default \\    link/ether 1a:…",
      { device: "kube-ipvs0", gone: true },
    ],
    [
      "4: veth0@if3: <BROADCAST,MULTICAST,UP> mtu 1500 state UP \\    link/ether 1a:…",
      { device: "veth0", gone: false },
    ],
    ["       valid_lft forever preferred_lft forever", undefined],
  ])("%s", ([line, expected]) => {
    expect(parseMonitorLine(line)).toEqual(expected);
  });

  test("the node's are addresses of other devices than kube-ipvs0", () => {
    const lines = [ETH0_LINE, { device: "eth0", gone: true }, { ...ETH0_LINE, device: "kube-ipvs0" }];
    expect(lines.map(isNodeChange)).toEqual([true, false, false]);
  });
});

describe("watch with time turned by hand", () => {
  const start = (runner: FakeRunner, problems: string[] = []) => {
    const clock = new VirtualClock();
    const stop = new AbortController();
    const onProblem = (error: unknown) => problems.push(String(error));
    const fallback = () => [eth0("192.0.2.99")];
    const addresses = createNodeAddresses(runner, { timers: clock, onProblem, fallback });
    return { clock, stop, ...collect(addresses, stop.signal) };
  };

  test("a monitor that ends is started again, ever later, and the addresses are looked at each time", async () => {
    let now = [eth0("192.0.2.1")];
    const monitored: number[] = [];
    const runner = new FakeRunner({
      ip: (args) => {
        if (!args.includes("monitor")) return json(now);
        monitored.push(clock.monotonic());
        return "";
      },
    });
    const problems: string[] = [];
    const { clock, stop, seen, done } = start(runner, problems);
    await clock.advance(16_000);
    expect(monitored).toEqual([0, 1000, 3000, 7000, 15_000]);
    expect(problems).toHaveLength(5);
    expect(seen).toEqual([["192.0.2.1"]]);
    now = [eth0("192.0.2.2")];
    await clock.advance(60_000);
    expect(seen).toEqual([["192.0.2.1"], ["192.0.2.2"]]);
    stop.abort();
    await done;
  });

  test("a listing that fails is told and tried again", async () => {
    let broken = true;
    const runner = new FakeRunner({
      ip: (args) => (broken && args.includes("-json") ? { exitCode: 1, stderr: "no" } : json([eth0("192.0.2.1")])),
    });
    const problems: string[] = [];
    const { clock, stop, seen, done } = start(runner, problems);
    await clock.advance(500);
    expect(seen).toEqual([]);
    expect(problems.join()).toContain("exit code 1: no");
    broken = false;
    await clock.advance(2000);
    expect(seen).toEqual([["192.0.2.1"]]);
    broken = true;
    await clock.advance(60_000);
    expect(seen).toEqual([["192.0.2.1"]]);
    stop.abort();
    await done;
  });

  test("where ip fails three times and has never given any, the C library's are given until it does", async () => {
    let broken = true;
    const runner = new FakeRunner({
      ip: (args) => (broken && args.includes("-json") ? { exitCode: 1, stderr: "no" } : json([eth0("192.0.2.1")])),
    });
    const { clock, stop, seen, done } = start(runner);
    await clock.advance(1_000);
    expect(seen).toEqual([]);
    await clock.advance(3_000);
    expect(seen).toEqual([["192.0.2.99"]]);
    broken = false;
    await clock.advance(2_000);
    expect(seen).toEqual([["192.0.2.99"], ["192.0.2.1"]]);
    stop.abort();
    await done;
  });
});

test("addresses by the C library: those of interfaces that are up, but for kube-ipvs0", () => {
  const common = { mac: "00:00:00:00:00:00", internal: false };
  const six = { ...common, netmask: "ffff:ffff:ffff:ffff::", family: "IPv6", scopeid: 0 } as const;
  const four = (address: string, cidr: string | null) =>
    ({ ...common, address, netmask: "255.255.255.0", family: "IPv4", cidr }) as const;
  const found = interfaceAddresses({
    lo: [{ ...four("127.0.0.1", "127.0.0.1/8"), internal: true }],
    eth0: [
      four("192.0.2.1", "192.0.2.1/24"),
      { ...six, address: "fe80::1", cidr: "fe80::1/64" },
      { ...six, address: "2001:db8::1", cidr: "2001:db8::1/64" },
    ],
    "kube-ipvs0": [four("10.96.0.1", "10.96.0.1/32")],
    wg0: [four("198.51.100.1", null)],
    gone: undefined,
  });
  expect(found).toEqual([
    { ...eth0("127.0.0.1"), interface: "lo", prefixLength: 8, scope: "host" },
    eth0("192.0.2.1"),
    { ...eth0("fe80::1"), prefixLength: 64, scope: "link" },
    { ...eth0("2001:db8::1"), prefixLength: 64 },
    { ...eth0("198.51.100.1"), interface: "wg0", prefixLength: 32 },
  ]);
});

test("in memory: at once, at each change, not for the services' device", async () => {
  const addresses = new FakeNodeAddresses([eth0("192.0.2.1")]);
  const stop = new AbortController();
  const { seen, done } = collect(addresses, stop.signal);
  await settled();
  addresses.add(eth0("2001:db8::1"));
  await settled();
  addresses.add({ ...eth0("10.96.0.1"), interface: "kube-ipvs0" });
  addresses.remove("192.0.2.1");
  await settled();
  stop.abort();
  await done;
  expect(seen).toEqual([["192.0.2.1"], ["192.0.2.1", "2001:db8::1"], ["2001:db8::1"]]);
  expect(await addresses.list()).toEqual([eth0("2001:db8::1")]);
});

test("where netlink cannot be had they come from `ip`", async () => {
  const runner = new FakeRunner({
    ip: () =>
      '[{"ifname":"lo","flags":["UP"],"addr_info":[{"family":"inet","local":"127.0.0.1","prefixlen":8,"scope":"host"}]}]',
  });
  const open = () => Promise.reject(new Error("no binary"));
  const [only, ...others] = await createNodeAddresses(runner, { open }).list();
  expect([only?.address, only?.scope, only?.up, others]).toEqual(["127.0.0.1", "host", true, []]);
});

const ENOBUFS = 105;

/** Addresses that are listed by netlink and followed by what a socket says. */
function following(listen: () => Promise<ListeningSocket>) {
  const timers = new VirtualClock();
  const stop = new AbortController();
  const calls: string[] = [];
  const runner = new FakeRunner({
    ip: (args) => {
      calls.push(args.join(" "));
      return "[]";
    },
  });
  let lists = 0;
  const open: OpenNetlink = async () => {
    let asked: Buffer | undefined;
    return {
      send: async (bytes) => {
        asked = Buffer.from(bytes);
        if (asked.readUInt16LE(4) === TYPES.getAddress) lists++;
      },
      receive: async (into) => into.subarray(0, answered(dumpDone, asked).copy(into)),
      close: async () => {},
    };
  };
  const addresses = createNodeAddresses(runner, { timers, listen, open });
  const done = (async () => {
    for await (const _ of addresses.watch({ signal: stop.signal }));
  })();
  const end = async () => {
    stop.abort();
    await done;
  };
  return { timers, calls, lists: () => lists, end };
}

test("what could not be kept leads to a list, and no process listens", async () => {
  const told: Error[] = [];
  let closed = 0;
  const socket: ListeningSocket = {
    join: () => {},
    leave: () => {},
    receive() {
      const next = told.shift();
      if (next === undefined) return undefined;
      throw next;
    },
    close: () => void closed++,
  };
  const { timers, calls, lists, end } = following(async () => socket);
  await timers.advance(5_000);
  expect(lists()).toBe(2);
  told.push(new NetlinkError("reading", ENOBUFS));
  await timers.advance(2_000);
  expect([lists(), calls]).toEqual([3, []]);
  await end();
  expect(closed).toBe(1);
});

test("without netlink a process listens", async () => {
  const { calls, end } = following(async () => {
    throw new Error("koffi has no binary for this machine");
  });
  await settled();
  expect(calls).toContain("-oneline monitor address");
  await end();
});

/** Collects what a watch gives. */
function collect(addresses: NodeAddresses, signal: AbortSignal) {
  const seen: string[][] = [];
  const done = (async () => {
    for await (const list of addresses.watch({ signal })) seen.push(list.map(({ address }) => address));
  })();
  return { seen, done };
}
