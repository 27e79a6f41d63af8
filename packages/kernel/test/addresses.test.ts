import { familyOf } from "@fairlead/base";
import { settled, VirtualClock } from "@fairlead/base/testing";
import { describe, expect, test } from "vitest";
import { parseAddresses } from "../src/address-monitor.ts";
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
    const named =
      '[{"ifname":"a\u001b[2J\\"","flags":["UP"],\n"addr_info":[{"family":"inet","local":"10.9.0.1","prefixlen":24,"scope":"global"}]}]';
    expect(parseAddresses(named)).toMatchObject([{ address: "10.9.0.1", interface: 'a\u001b[2J"' }]);
  });

  test("the node's are addresses of other devices than kube-ipvs0", () => {
    const lines = [ETH0_LINE, { device: "eth0", gone: true }, { ...ETH0_LINE, device: "kube-ipvs0" }];
    expect(lines.map(isNodeChange)).toEqual([true, false, false]);
  });
});

test("without netlink `ip` is asked every five seconds, and again soon where it failed", async () => {
  let broken = true;
  let now = "192.0.2.1";
  const runner = new FakeRunner({ ip: () => (broken ? { exitCode: 1, stderr: "no" } : json([eth0(now)])) });
  const clock = new VirtualClock();
  const stop = new AbortController();
  const problems: string[] = [];
  const onProblem = (error: unknown) => problems.push(String(error));
  const listen = () => Promise.reject(new Error("koffi has no binary for this machine"));
  const { seen, done } = collect(createNodeAddresses(runner, { timers: clock, onProblem, listen }), stop.signal);
  await clock.advance(500);
  expect(seen).toEqual([]);
  expect(problems.join()).toContain("exit code 1: no");
  broken = false;
  await clock.advance(2_000);
  now = "192.0.2.2";
  await clock.advance(6_000);
  expect(seen).toEqual([["192.0.2.1"], ["192.0.2.2"]]);
  broken = true;
  await clock.advance(60_000);
  expect(seen).toHaveLength(2);
  stop.abort();
  await done;
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
  const errors: Error[] = [];
  let closed = 0;
  const socket: ListeningSocket = {
    join: () => {},
    leave: () => {},
    receive() {
      const next = errors.shift();
      if (next === undefined) return undefined;
      throw next;
    },
    close: () => void closed++,
  };
  const { timers, calls, lists, end } = following(async () => socket);
  await timers.advance(5_000);
  expect(lists()).toBe(2);
  errors.push(new NetlinkError("reading", ENOBUFS));
  await timers.advance(2_000);
  expect([lists(), calls]).toEqual([3, []]);
  await end();
  expect(closed).toBe(1);
});

function collect(addresses: NodeAddresses, signal: AbortSignal) {
  const seen: string[][] = [];
  const done = (async () => {
    for await (const list of addresses.watch({ signal })) seen.push(list.map(({ address }) => address));
  })();
  return { seen, done };
}
