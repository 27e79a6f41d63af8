import { type Expression, statements } from "@fairlead/netfilter/nft";
import { describe, expect, test } from "vitest";
import { explore, type Outcome, type Packet, type Rules, trace } from "../../src/index.ts";
import { HOST, ownPacket, packet, places, ruleSet } from "../rule-set.ts";
import { tableOf } from "./tables.ts";

function only(rules: Rules, sent: Packet = packet()): Outcome {
  const [outcome, ...more] = trace(rules, sent, HOST);
  if (outcome === undefined || more.length > 0) throw new Error(`${more.length + 1} ways instead of one`);
  return outcome;
}

const through = (chains: Parameters<typeof tableOf>[0]) => only({ nftables: [tableOf(chains)] });

describe("verdicts", () => {
  test("jump comes back, goto goes on where the jump came from", () => {
    const mark = (bits: number) => `meta mark set meta mark | ${bits}`;
    const chains = { "forward filter": ["jump a", mark(1)], a: ["goto b", mark(2)], b: [mark(4)] };
    expect(through(chains).mark).toBe(1 | 4);
  });

  test("return in a base chain is its policy", () => {
    expect(through({ "forward filter 0 drop": ["return", "accept"] }).verdict).toBe("drop");
    expect(through({ "forward filter": ["return", "drop"] }).verdict).toBe("accept");
  });

  test("goto from a base chain leads to its policy", () => {
    expect(through({ "forward filter 0 drop": ["goto a", "accept"], a: ["meta mark set 0x1"] }).verdict).toBe("drop");
  });

  test("continue goes on with the rule", () => {
    expect(through({ "forward filter": ["continue drop"] }).verdict).toBe("drop");
  });

  test("accept ends this chain's hook only, drop is final", () => {
    const first = tableOf({ "forward filter": ["accept", "drop"] }, [], { name: "first" });
    const second = tableOf({ "forward filter 10": ["drop"] }, [], { name: "second" });
    expect(only({ nftables: [first, second] })).toMatchObject({ verdict: "drop", table: "ip second" });
  });

  test("a chain that is not there and a loop are errors that name the rule", () => {
    expect(() => through({ "forward filter": ["jump a"] })).toThrow(
      "there is no chain a: rule 1 of ip t forward-filter: jump a",
    );
    expect(() => through({ "forward filter": ["jump a"], a: ["goto a"] })).toThrow("the chains are a loop: a → a");
  });
});

describe("the order of chains", () => {
  const order = (rules: Rules, sent: Packet = packet()) =>
    only(rules, sent).visits.map(({ hook, table }) => `${table} ${hook}`);

  test("is that of priorities, with iptables among them", () => {
    const iptables = ruleSet({ mangle: "-A FORWARD -j MARK --set-xmark 0x1/0x1\n", filter: "-A FORWARD\n" });
    const table = tableOf({
      "forward filter 10": ["counter"],
      "forward filter -200": ["counter"],
      "prerouting filter -110": ["counter"],
      "forward filter -1": ["counter"],
    });
    expect(order({ iptables, nftables: [table] })).toEqual([
      "ip t PREROUTING",
      "ip t FORWARD",
      "mangle FORWARD",
      "ip t FORWARD",
      "filter FORWARD",
      "ip t FORWARD",
    ]);
  });

  test("of one priority the chain is first that was made last", () => {
    const [first, second] = ["a", "b"].map((name) => tableOf({ "forward filter": ["counter"] }, [], { name }));
    if (first === undefined || second === undefined) throw new Error("two tables were made");
    const iptables = ruleSet({ filter: "-A FORWARD\n" });
    expect(order({ iptables, nftables: [first, second] })).toEqual(["ip b FORWARD", "ip a FORWARD", "filter FORWARD"]);
  });

  test("of another family's tables none is asked", () => {
    const table = tableOf({ "forward filter": ["drop"] }, [], { family: "ip6" });
    expect(only({ nftables: [table] }).verdict).toBe("accept");
  });
});

describe("translation", () => {
  const to = (address: string, name: string, priority: number) =>
    tableOf({ [`prerouting nat ${priority}`]: [`dnat to ${address}:80`] }, [], { name });

  test("is made once: the chain of the lowest priority that wants one makes it", () => {
    const tables = [to("10.144.1.1", "late", -90), to("10.144.1.2", "early", -105)];
    expect(only({ nftables: tables }).destination.address).toBe("10.144.1.2");
  });

  test("by a table of iptables leaves the chains behind it out", () => {
    const iptables = ruleSet({ nat: "-A PREROUTING -j DNAT --to-destination 10.144.1.3:80\n" });
    expect(only({ iptables, nftables: [to("10.144.1.1", "late", -90)] }).destination.address).toBe("10.144.1.3");
    expect(only({ iptables, nftables: [to("10.144.1.2", "early", -105)] }).destination.address).toBe("10.144.1.2");
  });

  test("is not made by a chain that accepts: the next one may", () => {
    const accepting = tableOf({ "prerouting nat -105": ["accept"] }, [], { name: "early" });
    expect(only({ nftables: [accepting, to("10.144.1.1", "late", -90)] }).destination.address).toBe("10.144.1.1");
  });

  test("happens at nat's place, whatever the chain's own priority", () => {
    const table = tableOf({
      "prerouting filter -95": ["ip daddr 10.144.1.1 drop"],
      "prerouting nat -90": ["dnat to 10.144.1.1:80"],
    });
    expect(only({ nftables: [table] }).verdict).toBe("drop");
  });

  test("only the first packet of a connection asks for it", () => {
    const rules = { nftables: [to("10.144.1.1", "t", -100)] };
    expect(only(rules, packet({ state: "ESTABLISHED" })).translated).toBe(false);
  });

  test("of the host's own packets is in output, and they are masqueraded as any", () => {
    const table = tableOf({
      "output nat": ["dnat to 10.144.1.1:80"],
      "postrouting nat": ["masquerade"],
    });
    expect(only({ nftables: [table] }, ownPacket())).toMatchObject({
      destination: { address: "10.144.1.1" },
      masqueraded: true,
      path: "output",
    });
  });
});

describe("random choices", () => {
  const slots = [0, 1, 2].map((slot) => `10.0.0.1 . tcp . 80 . ${slot} : 10.144.1.${slot} . 8080`);
  const endpoints = [
    "map endpoints-4 {",
    "type ipv4_addr . inet_proto . inet_service . integer : ipv4_addr . inet_service",
    `elements = { ${slots.join(", ")} }\n}`,
  ].join("\n");

  /** Draws among so many slots, and translates where the slot has an endpoint. */
  const drawing = (modulus: number) =>
    `dnat to ip daddr . meta l4proto . th dport . numgen random mod ${modulus} map @endpoints-4`;

  const shares = (...draws: readonly number[]) => {
    const table = tableOf({ "prerouting nat": draws.map(drawing) }, [endpoints]);
    const outcomes = trace({ nftables: [table] }, packet(), HOST);
    expect(outcomes.reduce((sum, { probability }) => sum + probability, 0)).toBeCloseTo(1, 12);
    const found = new Map<string, number>();
    for (const { destination, probability } of outcomes) {
      found.set(destination.address, (found.get(destination.address) ?? 0) + probability);
    }
    return found;
  };

  test("an empty slot ends the rule, and the next one draws again", () => {
    const found = shares(4, 4, 1);
    // 1/4 + 1/4 of the quarter that found nothing; the first slot has the sixteenth besides that found nothing twice.
    expect(found.get("10.144.1.1")).toBeCloseTo(0.3125, 12);
    expect(found.get("10.144.1.2")).toBeCloseTo(0.3125, 12);
    expect(found.get("10.144.1.0")).toBeCloseTo(0.375, 12);
    expect(found.has("10.0.0.1")).toBe(false);
  });

  test("what no draw found stays as it was", () => {
    expect(shares(4).get("10.0.0.1")).toBeCloseTo(0.25, 12);
  });

  test("slots that lead to one place are one way", () => {
    const choose = "numgen random mod 4 vmap { 0 : goto a, 1 : goto a, 2 : goto a, 3 : goto b }";
    const table = tableOf({ "forward filter": [choose], a: ["drop"], b: ["accept"] });
    const outcomes = trace({ nftables: [table] }, packet(), HOST);
    expect(outcomes.map(({ verdict: end, probability }) => [end, probability]).sort()).toEqual([
      ["accept", 0.25],
      ["drop", 0.75],
    ]);
  });
});

describe("what can't be decided", () => {
  const service: readonly Expression[] = [
    { kind: "payload", base: "network", offset: 1, length: 1, to: 0 },
    { kind: "cmp", operator: "==", from: 0, value: "40" },
  ];
  const drop = statements.verdict({ kind: "drop" });
  const problem = "bytes 1 to 1 of its network header are not known";

  test("is an error that names the rule", () => {
    const table = tableOf({ "forward filter": [[...service, ...drop]] });
    expect(() => only({ nftables: [table] })).toThrow(`${problem}: rule 1 of ip t forward-filter: @nh,8,8 0x40 drop`);
  });

  test("is explored both ways, and reported", () => {
    const table = tableOf({ "forward filter": [[...service, ...drop]] });
    const { outcomes, undecided } = explore({ nftables: [table] }, packet(), HOST);
    expect(undecided).toEqual([]);
    expect(
      outcomes.map(({ verdict: end, assumed }) => [end, assumed?.[0]?.matched, assumed?.[0]?.problem]).sort(),
    ).toEqual([
      ["accept", false, problem],
      ["drop", true, problem],
    ]);
  });

  test("leaves no doubt where another match of the rule fails, or where it does nothing", () => {
    const failing = [...service, ...statements.protocolIs("udp"), ...drop];
    const table = tableOf({ "forward filter": [failing, [...service, { kind: "counter" }]] });
    const { outcomes } = explore({ nftables: [table] }, packet(), HOST);
    expect(outcomes).toMatchObject([{ verdict: "accept", probability: 1 }]);
    expect(outcomes[0]?.assumed).toBeUndefined();
  });

  test.each([
    ["limit rate 6/minute", 2],
    ["icmp type echo-request", 2],
    ['log prefix "seen"', 1],
  ])("%s, of which only the text is known, lets the packet on, or both ways are taken", (text, ways) => {
    const table = tableOf({ "forward filter": [`${text} drop`] });
    const { outcomes, undecided } = explore({ nftables: [table] }, packet(), HOST);
    expect(outcomes).toHaveLength(ways);
    expect(outcomes.some(({ verdict: end }) => end === "drop")).toBe(true);
    expect(undecided).toEqual([]);
  });

  test.each(["snat to 192.0.2.1", "queue to 1", "meta mark set ct mark", "icmp type vmap { echo-request : accept }"])(
    "%s may do anything: the way ends there",
    (text) => {
      const table = tableOf({ "forward filter": [`${text} drop`] });
      const { outcomes, undecided } = explore({ nftables: [table] }, packet(), HOST);
      expect(outcomes).toEqual([]);
      expect(undecided).toMatchObject([{ problem: { problem: `the tracer does not know "${text}"` } }]);
    },
  );

  test("a set or a verdict that is not known leads nowhere", () => {
    const unknown = statements.lookUp("ip", ["daddr"], "nowhere");
    const { undecided } = explore({ nftables: [tableOf({ "forward filter": [unknown] })] }, packet(), HOST);
    expect(undecided).toMatchObject([{ problem: { problem: "there is no set nowhere", table: "ip t" } }]);
  });
});

test("a rule set in which iptables only is known is what it was", () => {
  const rules = ruleSet({ nat: "-A PREROUTING -j DNAT --to-destination 10.144.1.3:80\n" });
  expect(trace({ iptables: rules }, packet(), HOST)).toEqual(trace(rules, packet(), HOST));
  expect(places(rules, packet())).toEqual(["→ 10.144.1.3:80"]);
});
