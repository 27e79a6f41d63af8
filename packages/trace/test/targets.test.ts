import { describe, expect, test } from "vitest";
import { landings, trace } from "../src/index.ts";
import { HOST, only, ownPacket, packet, places, ruleSet } from "./rule-set.ts";

describe("DNAT", () => {
  test.each([
    ["10.144.1.5:8080", { address: "10.144.1.5", port: 8080 }],
    ["10.144.1.5", { address: "10.144.1.5", port: 80 }],
    [":8080", { address: "10.0.0.1", port: 8080 }],
  ])("to %s", (to, destination) => {
    const rules = ruleSet({ nat: `-A PREROUTING -p tcp -j DNAT --to-destination ${to}\n-A PREROUTING -j A\n-A A\n` });
    const outcome = only(rules, packet());
    expect(outcome).toMatchObject({ destination, translated: true, redirected: false });
    expect(outcome.visits).toHaveLength(1);
  });

  test.each([
    ["[fd00:144::5]:8080", { address: "fd00:144::5", port: 8080 }],
    ["fd00:144::5", { address: "fd00:144::5", port: 80 }],
    ["[fd00:144::5]", { address: "fd00:144::5", port: 80 }],
  ])("IPv6 to %s", (to, destination) => {
    const rules = ruleSet({ nat: `-A PREROUTING -p tcp -j DNAT --to-destination ${to}\n` }, "IPv6");
    expect(only(rules, packet({ family: "IPv6", source: "fd00:99::1", destination: "fd00:10::1" }))).toMatchObject({
      destination,
    });
  });
});

describe("REDIRECT", () => {
  const rules = ruleSet({
    nat: "-A PREROUTING -p tcp -j REDIRECT --to-ports 15001\n-A OUTPUT -p tcp -j REDIRECT\n",
  });

  test("of a packet from outside goes to the host's own address", () => {
    expect(only(rules, packet())).toMatchObject({
      destination: { address: "10.201.0.10", port: 15001 },
      redirected: true,
      translated: true,
      path: "input",
    });
  });

  test("of a packet from outside goes to what the environment says the interface has", () => {
    const host = { ...HOST, redirectAddress: (name: string) => (name === "eth0" ? "10.202.0.10" : undefined) };
    expect(only(rules, packet(), { ...host, localAddresses: ["10.201.0.10", "10.202.0.10"] })).toMatchObject({
      destination: { address: "10.202.0.10", port: 15001 },
      path: "input",
    });
  });

  test("of the host's own goes to loopback", () => {
    expect(only(rules, ownPacket())).toMatchObject({ destination: { address: "127.0.0.1", port: 80 }, path: "input" });
  });
});

describe("MASQUERADE", () => {
  const rules = ruleSet({ nat: "-A POSTROUTING -o eth0 -j MASQUERADE --random-fully\n-A POSTROUTING -j A\n-A A\n" });

  test("takes the host's address and ends the table", () => {
    const outcome = only(rules, packet());
    expect(outcome).toMatchObject({ masqueraded: true, source: { address: "10.201.0.10", port: 40_000 } });
    expect(outcome.visits).toHaveLength(1);
  });

  test("takes the address that the environment gives the interface", () => {
    const environment = {
      ...HOST,
      masqueradeAddress: (name: string | undefined) => `10.0.${name === "eth0" ? 1 : 2}.1`,
    };
    expect(only(rules, packet(), environment).source.address).toBe("10.0.1.1");
  });

  test("keeps the source where the environment has no address", () => {
    expect(only(rules, packet(), { outInterface: () => "eth0" })).toMatchObject({
      masqueraded: true,
      source: { address: "192.0.2.9" },
    });
  });
});

describe("MARK", () => {
  test.each([
    ["0x4000/0x4000", 0x1, 0x4001],
    ["0x4000/0x0", 0x4001, 0x1],
    ["0x4000/0x0", 0x1, 0x4001],
    ["0x5/0xffffffff", 0xff, 0x5],
    ["0x0/0xffffbfff", 0xffffffff, 0x4000],
    ["0x80000000/0x80000000", 0x0, 0x80000000],
  ])("--set-xmark %s", (xmark, before, after) => {
    const rules = ruleSet({ mangle: `-A FORWARD -j MARK --set-xmark ${xmark}\n` });
    expect(only(rules, packet({ mark: before })).mark).toBe(after);
  });
});

describe("random choices", () => {
  const chain = (count: number) =>
    Array.from({ length: count }, (_, at) => {
      const left = count - at;
      const statistic = left > 1 ? ` -m statistic --mode random --probability ${(1 / left).toFixed(11)}` : "";
      return `-A PREROUTING -p tcp${statistic} -j DNAT --to-destination 10.144.1.${at + 1}:80\n`;
    }).join("");

  test.each([2, 3, 7, 200])("one of %d, evenly", (count) => {
    const found = landings(trace(ruleSet({ nat: chain(count) }), packet(), HOST));
    expect(found).toHaveLength(count);
    for (const { probability } of found) expect(probability).toBeCloseTo(1 / count, 8);
    expect(found.reduce((sum, { probability }) => sum + probability, 0)).toBeCloseTo(1, 12);
  });

  test("one after the other multiply", () => {
    const half = "-m statistic --mode random --probability 0.50000000000";
    const rules = ruleSet({
      mangle: `-A PREROUTING ${half} -j MARK --set-xmark 0x1/0x1\n`,
      filter: `-A FORWARD -m mark --mark 0x1 ${half} -j DROP\n`,
    });
    expect(places(rules, packet()).toSorted()).toEqual(["drop 10.0.0.1:80 25.0%", "→ 10.0.0.1:80 75.0%"]);
  });

  test.each([
    ["0.00000000000", "accept"],
    ["1.00000000000", "drop"],
  ])("probability %s is no choice", (probability, verdict) => {
    const rules = ruleSet({ filter: `-A FORWARD -m statistic --mode random --probability ${probability} -j DROP\n` });
    expect(only(rules, packet()).verdict).toBe(verdict);
  });

  test("matches before the choice are asked first, those behind it only of the chosen", () => {
    const half = "-m statistic --mode random --probability 0.50000000000";
    const rules = ruleSet({
      filter: `-A FORWARD -m mark --mark 0x1 ${half} -j DROP\n-A FORWARD ${half} -m mark --mark 0x1 -j DROP\n`,
    });
    expect(places(rules, packet())).toEqual(["→ 10.0.0.1:80"]);
    expect(trace(rules, packet(), HOST)).toHaveLength(2);
  });

  test("a choice made in a chain goes on behind the jump, for both", () => {
    const rules = ruleSet({
      filter: "-A FORWARD -j A\n-A FORWARD -j REJECT\n-A A -m statistic --mode random --probability 0.25 -j DROP\n",
    });
    expect(places(rules, packet())).toEqual(["drop 10.0.0.1:80 25.0%", "reject 10.0.0.1:80 75.0%"]);
  });

  test("too many ways are refused", () => {
    const half = "-A FORWARD -m statistic --mode random --probability 0.5 -j MARK --set-xmark 0x1/0x0\n";
    expect(() => trace(ruleSet({ filter: half.repeat(17) }), packet(), HOST)).toThrow("more than 100000 ways");
  });
});
