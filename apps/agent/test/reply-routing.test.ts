import type { IPFamily } from "@fairlead/base";
import { VirtualClock } from "@fairlead/base/testing";
import { REPLY_TABLE, type ReplyViaSettings } from "@fairlead/config";
import type { RouteEntry } from "@fairlead/kernel";
import { FakeNftables, FakeRouting } from "@fairlead/kernel/fake";
import { tableText } from "@fairlead/netfilter/nft";
import { describe, expect, test } from "vitest";
import { chooseUplinks, ReplyRouting, removeReplyRouting } from "../src/reply-routing.ts";
import { recordedLog } from "./support/fake-node.ts";

const AUTO: ReplyViaSettings = { uplinks: "auto", markMask: 0x3000, rulePriority: 200, firstTable: 17_000 };
const byDefault = (name: string, gateway: string, metric = 0): RouteEntry => ({
  destination: "default",
  interface: name,
  gateway,
  metric,
});
const onLink = (name: string, destination: string): RouteEntry => ({ destination, interface: name, metric: 0 });
const TWO = [
  byDefault("eth0", "10.201.0.1"),
  byDefault("eth1", "10.202.0.1", 200),
  onLink("eth0", "10.201.0.0/24"),
  onLink("eth1", "10.202.0.0/24"),
];

function node(settings: ReplyViaSettings = AUTO, translates = true, families: readonly IPFamily[] = ["IPv4"]) {
  const routing = new FakeRouting();
  const nftables = new FakeNftables();
  const log = recordedLog();
  const make = () =>
    new ReplyRouting({
      settings,
      families,
      translates,
      routing,
      nftables,
      intervalMs: 30_000,
      timers: new VirtualClock(),
      log,
    });
  const table = async (family: "ip" | "ip6" = "ip") => {
    const there = await nftables.table(family, REPLY_TABLE);
    return there === undefined ? "" : tableText(there);
  };
  const { IPv4 } = routing.families;
  const tables = () =>
    IPv4.own.map(({ table: number, interface: name, destination }) => `${number} ${name} ${destination}`);
  const rules = () =>
    IPv4.rules.map(({ mark, mask, table: number }) => `${mark.toString(16)}/${mask.toString(16)} ${number}`);
  return { routing, nftables, log, make, table, tables, rules };
}

describe("reply routing", () => {
  test("every interface with a default route has a mark, a rule and a copy of its routes", async () => {
    const { routing, make, table, tables, rules } = node();
    routing.change("IPv4", TWO);
    await make().sync();
    expect(tables()).toEqual([
      "17000 eth0 default",
      "17000 eth0 10.201.0.0/24",
      "17001 eth1 default",
      "17001 eth1 10.202.0.0/24",
    ]);
    expect(rules()).toEqual(["1000/3000 17000", "3000/3000 17001"]);
    expect(await table()).toContain('iifname "eth1" ct state new ct status dnat ct mark set');
    expect(await table()).toContain("ct direction reply ct mark & 0x00003000 == 0x00003000 meta mark set");
  });

  test("a second sync writes nothing", async () => {
    const { routing, nftables, make } = node();
    routing.change("IPv4", TWO);
    const replies = make();
    await replies.sync();
    const written = routing.written.length;
    const generation = await nftables.generation();
    await replies.sync();
    expect(routing.written).toHaveLength(written);
    expect(await nftables.generation()).toBe(generation);
  });

  test("an interface that goes and returns has the mark that its connections have", async () => {
    const { routing, make, rules } = node();
    routing.change("IPv4", TWO);
    const replies = make();
    await replies.sync();
    routing.change(
      "IPv4",
      TWO.filter((route) => route.interface === "eth1"),
    );
    await replies.sync();
    expect(rules()).toEqual(["3000/3000 17001"]);
    routing.change("IPv4", TWO);
    await replies.sync();
    expect(rules().toSorted()).toEqual(["1000/3000 17000", "3000/3000 17001"]);
  });

  test("another process goes on with the marks that there are", async () => {
    const { routing, make, rules } = node();
    routing.change(
      "IPv4",
      TWO.filter((route) => route.interface === "eth1"),
    );
    await make().sync();
    expect(rules()).toEqual(["1000/3000 17000"]);
    routing.change("IPv4", TWO);
    const before = routing.written.length;
    await make().sync();
    expect(routing.written.slice(before).every(({ kind }) => kind === "set-route" || kind === "add-rule")).toBe(true);
    expect(rules()).toEqual(["1000/3000 17000", "3000/3000 17001"]);
  });

  test("what cannot be written of one family holds up neither its marks nor the other family", async () => {
    const { routing, make, table, tables } = node(AUTO, true, ["IPv6", "IPv4"]);
    routing.change("IPv4", TWO);
    routing.refusing.add("IPv6");
    await expect(make().sync()).rejects.toThrow(AggregateError);
    expect(tables()).toHaveLength(4);
    expect(await table("ip6")).toContain('iifname "eth1"');
    expect(await table()).toContain('iifname "eth1"');
  });

  test.each([
    ["a link that goes between the look and the write is seen in a second look", 1, []],
    [
      "what is refused again is reported",
      2,
      ["Failed to write reply routing; answers may leave by another interface, retrying"],
    ],
  ] as const)("%s", async (_, refusals, reported) => {
    const { routing, make, log, tables } = node();
    routing.change("IPv4", TWO);
    let left: number = refusals;
    const write = routing.write.bind(routing);
    routing.write = async (family, commands) => {
      if (left-- <= 0) return write(family, commands);
      routing.change(family, TWO.slice(0, 1));
      throw new Error("Device for nexthop is not up.");
    };
    const stop = new AbortController();
    const running = make().run(stop.signal);
    await expect.poll(() => left).toBeLessThan(0);
    stop.abort();
    await running;
    expect(log.messages("error")).toEqual(reported);
    expect(tables()).toEqual(["17000 eth0 default"]);
  });

  test("a table of the operator's gets no route, and a rule whatever is in it", async () => {
    const { routing, make, tables, rules } = node({ ...AUTO, uplinks: [{ interface: "eth1", table: 102 }] });
    routing.change("IPv4", TWO);
    await make().sync();
    expect(tables()).toEqual([]);
    expect(rules()).toEqual(["1000/3000 102"]);
  });

  test("more interfaces than the mask has marks are reported, and left out", async () => {
    const { routing, make, log, rules } = node();
    routing.change("IPv4", [...TWO, byDefault("eth2", "10.203.0.1", 300)]);
    await make().sync();
    expect(rules()).toHaveLength(2);
    expect(log.messages("warn")).toEqual([expect.stringContaining("too few bits")]);
  });

  test("where the mode takes packets in, connections are marked as they come in, and those that others translate", async () => {
    const { routing, make, table } = node(AUTO, false);
    routing.change("IPv4", TWO);
    await make().sync();
    expect(await table()).toContain('iifname "eth1" ct state new ct mark set');
    expect(await table()).toContain("hook input priority mangle");
    expect(await table()).toContain('iifname "eth1" ct state new ct status dnat ct mark set');
  });

  test("the clean-up removes all of it, and says whether there was anything", async () => {
    const { routing, nftables, make, table, tables, rules } = node();
    expect(await removeReplyRouting(routing, nftables)).toBe(false);
    routing.change("IPv4", TWO);
    await make().sync();
    expect(await removeReplyRouting(routing, nftables)).toBe(true);
    expect([await table(), tables(), rules()]).toEqual(["", [], []]);
  });
});

test("marks have the mask's lowest bit, and stay within it", () => {
  const names = Array.from({ length: 9 }, (_, at) => byDefault(`eth${at}`, "10.0.0.1"));
  const { uplinks, leftOut } = chooseUplinks({ ...AUTO, markMask: 0xf0_0000 }, names, new Map());
  const marks = uplinks.map(({ mark }) => mark);
  expect(new Set(marks).size).toBe(8);
  for (const mark of marks) expect([mark & 0x10_0000, mark & ~0xf0_0000]).toEqual([0x10_0000, 0]);
  expect(leftOut).toEqual(["eth8"]);
});
