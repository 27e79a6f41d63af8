import type { RuleSet } from "@fairlead/netfilter";
import { describe, expect, test } from "vitest";
import type { Hook } from "../src/index.ts";
import { only, ownPacket, packet, ruleSet } from "./rule-set.ts";

const HOOKS: Record<"raw" | "mangle" | "nat" | "filter", Hook[]> = {
  raw: ["PREROUTING", "OUTPUT"],
  mangle: ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"],
  nat: ["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"],
  filter: ["INPUT", "FORWARD", "OUTPUT"],
};

/** Every table has a rule that only counts at each of its hooks. */
const everywhere: RuleSet = ruleSet(
  Object.fromEntries(
    Object.entries(HOOKS).map(([table, hooks]) => [table, hooks.map((hook) => `-A ${hook}\n`).join("")]),
  ),
);

function way(...args: Parameters<typeof only>): string[] {
  return only(...args).visits.map(({ hook, table }) => `${table} ${hook}`);
}

describe("the way of a packet", () => {
  test("from outside to another host", () => {
    expect(way(everywhere, packet())).toEqual([
      "raw PREROUTING",
      "mangle PREROUTING",
      "nat PREROUTING",
      "mangle FORWARD",
      "filter FORWARD",
      "mangle POSTROUTING",
      "nat POSTROUTING",
    ]);
  });

  test("from outside to this host", () => {
    expect(way(everywhere, packet({ destination: "10.201.0.10" }))).toEqual([
      "raw PREROUTING",
      "mangle PREROUTING",
      "nat PREROUTING",
      "mangle INPUT",
      "filter INPUT",
      "nat INPUT",
    ]);
  });

  test("from this host to another", () => {
    expect(way(everywhere, ownPacket())).toEqual([
      "raw OUTPUT",
      "mangle OUTPUT",
      "nat OUTPUT",
      "filter OUTPUT",
      "mangle POSTROUTING",
      "nat POSTROUTING",
    ]);
  });

  test("from this host to itself: in again by lo, without nat", () => {
    expect(way(everywhere, ownPacket({ destination: "127.0.0.1" }))).toEqual([
      "raw OUTPUT",
      "mangle OUTPUT",
      "nat OUTPUT",
      "filter OUTPUT",
      "mangle POSTROUTING",
      "nat POSTROUTING",
      "raw PREROUTING",
      "mangle PREROUTING",
      "mangle INPUT",
      "filter INPUT",
    ]);
  });

  test.each(["ESTABLISHED", "RELATED", "INVALID", "UNTRACKED"] as const)("%s: without nat", (state) => {
    expect(way(everywhere, packet({ state })).filter((step) => step.startsWith("nat"))).toEqual([]);
  });
});

describe("where it ends", () => {
  test.each([
    [packet(), { verdict: "accept", path: "forward", hook: "POSTROUTING", table: "nat", outInterface: "eth0" }],
    [packet({ destination: "10.201.0.10" }), { verdict: "accept", path: "input", hook: "INPUT", table: "nat" }],
    [ownPacket(), { verdict: "accept", path: "output", hook: "POSTROUTING", table: "nat", outInterface: "eth0" }],
    [ownPacket({ destination: "10.201.0.10" }), { verdict: "accept", path: "input", hook: "INPUT", table: "nat" }],
  ])("%#", (sent, expected) => {
    const outcome = only(everywhere, sent);
    expect(outcome).toMatchObject(expected);
    expect(outcome).toMatchObject({
      probability: 1,
      translated: false,
      masqueraded: false,
      redirected: false,
      mark: 0,
    });
    expect(outcome.destination).toEqual({ address: sent.destination, port: 80 });
  });

  test("an empty rule set lets everything pass", () => {
    expect(only(ruleSet({}), packet(), {})).toMatchObject({ verdict: "accept", path: "forward", visits: [] });
  });

  test.each([
    ["raw", "PREROUTING", packet()],
    ["mangle", "FORWARD", packet()],
    ["filter", "INPUT", packet({ destination: "127.0.0.1" })],
    ["filter", "OUTPUT", ownPacket()],
    ["mangle", "POSTROUTING", ownPacket()],
  ] as const)("a policy DROP of %s %s", (table, hook, sent) => {
    const outcome = only(ruleSet({ [table]: `:${hook} DROP [0:0]\n` }), sent);
    expect(outcome).toMatchObject({ verdict: "drop", hook, table });
    expect(outcome).not.toHaveProperty("path");
  });

  test("REJECT says with what", () => {
    const rules = ruleSet({ filter: "-A FORWARD -p tcp -j REJECT --reject-with tcp-reset\n" });
    expect(only(rules, packet())).toMatchObject({ verdict: "reject", rejectWith: "tcp-reset", hook: "FORWARD" });
  });

  test("a drop in one table keeps the others from being asked", () => {
    const rules = ruleSet({ mangle: "-A FORWARD -j DROP\n", filter: "-A FORWARD -j ACCEPT\n" });
    expect(only(rules, packet()).visits).toHaveLength(1);
  });
});

describe("routing follows the translation", () => {
  test("DNAT to another host is forwarded", () => {
    const rules = ruleSet({
      nat: "-A PREROUTING -d 10.201.0.10/32 -p tcp -j DNAT --to-destination 10.144.1.5:8080\n",
      filter: "-A INPUT -j DROP\n-A FORWARD -d 10.144.1.5/32 -o cali+ -p tcp -m tcp --dport 8080 -j ACCEPT\n",
    });
    expect(only(rules, packet({ destination: "10.201.0.10" }))).toMatchObject({
      verdict: "accept",
      path: "forward",
      translated: true,
      destination: { address: "10.144.1.5", port: 8080 },
      outInterface: "cali1",
    });
  });

  test("DNAT to this host is delivered", () => {
    const rules = ruleSet({ nat: "-A PREROUTING -p tcp -j DNAT --to-destination 10.201.0.10:6443\n" });
    expect(only(rules, packet())).toMatchObject({ path: "input", destination: { address: "10.201.0.10", port: 6443 } });
  });

  test("DNAT of the host's own packet to itself comes in by lo", () => {
    const rules = ruleSet({
      nat: "-A OUTPUT -p tcp -j DNAT --to-destination 10.201.0.10:6443\n",
      filter: "-A INPUT -i lo -p tcp -m tcp --dport 6443 -j DROP\n",
    });
    expect(only(rules, ownPacket())).toMatchObject({ verdict: "drop", hook: "INPUT" });
  });

  test("a packet of a translated connection goes where its entry says", () => {
    const rules = ruleSet({ filter: "-A FORWARD -m conntrack --ctstate DNAT -d 10.144.1.5/32 -j REJECT\n" });
    const dnat = { address: "10.144.1.5", port: 8080 };
    expect(only(rules, packet({ state: "ESTABLISHED", dnat }))).toMatchObject({
      verdict: "reject",
      translated: true,
      destination: dnat,
    });
  });
});
