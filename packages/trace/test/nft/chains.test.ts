import { type Expression, hostHex, statements } from "@fairlead/netfilter/nft";
import { describe, expect, test } from "vitest";
import { explore, type Outcome, type Packet, type Rules, trace } from "../../src/index.ts";
import { HOST, ownPacket, packet, places, ruleSet } from "../rule-set.ts";
import { FRONTEND_TYPES, frontendKey, goTo, setOf, socketValue, tableOf } from "./tables.ts";

const { dnatTo, goTo: goingTo, jump, lookUp, loadKey, setMark, verdict } = statements;
const drop = verdict({ kind: "drop" });
const accept = verdict({ kind: "accept" });
const back = verdict({ kind: "return" });

function only(rules: Rules, sent: Packet = packet()): Outcome {
  const [outcome, ...more] = trace(rules, sent, HOST);
  if (outcome === undefined || more.length > 0) throw new Error(`${more.length + 1} ways instead of one`);
  return outcome;
}

const through = (chains: Parameters<typeof tableOf>[0]) => only({ nftables: [tableOf(chains)] });

describe("verdicts", () => {
  test("jump comes back, goto goes on where the jump came from", () => {
    const chains = { "forward filter": [jump("a"), setMark(1)], a: [goingTo("b"), setMark(2)], b: [setMark(4)] };
    expect(through(chains).mark).toBe(1 | 4);
  });

  test("return in a base chain is its policy", () => {
    expect(through({ "forward filter 0 drop": [back, accept] }).verdict).toBe("drop");
    expect(through({ "forward filter": [back, drop] }).verdict).toBe("accept");
  });

  test("goto from a base chain leads to its policy", () => {
    expect(through({ "forward filter 0 drop": [goingTo("a"), accept], a: [setMark(1)] }).verdict).toBe("drop");
  });

  test("continue goes on with the rule", () => {
    expect(through({ "forward filter": [[...verdict({ kind: "continue" }), ...drop]] }).verdict).toBe("drop");
  });

  test("accept ends this chain's hook only, drop is final", () => {
    const first = tableOf({ "forward filter": [accept, drop] }, [], { name: "first" });
    const second = tableOf({ "forward filter 10": [drop] }, [], { name: "second" });
    expect(only({ nftables: [first, second] })).toMatchObject({ verdict: "drop", table: "ip second" });
  });

  test("a chain that is not there and a loop are errors that name the rule", () => {
    expect(() => through({ "forward filter": [jump("a")] })).toThrow(
      "there is no chain a: rule 1 of ip t forward filter: jump a",
    );
    expect(() => through({ "forward filter": [jump("a")], a: [goingTo("a")] })).toThrow("the chains are a loop: a → a");
  });
});

describe("the order of chains", () => {
  const order = (rules: Rules, sent: Packet = packet()) =>
    only(rules, sent).visits.map(({ hook, table }) => `${table} ${hook}`);
  const nothing: readonly Expression[] = [{ kind: "counter" }];

  test("is that of priorities, with iptables among them", () => {
    const iptables = ruleSet({ mangle: "-A FORWARD -j MARK --set-xmark 0x1/0x1\n", filter: "-A FORWARD\n" });
    const table = tableOf({
      "forward filter 10": [nothing],
      "forward filter -200": [nothing],
      "prerouting filter -110": [nothing],
      "forward filter -1": [nothing],
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
    const [first, second] = ["a", "b"].map((name) => tableOf({ "forward filter": [nothing] }, [], { name }));
    if (first === undefined || second === undefined) throw new Error("two tables were made");
    const iptables = ruleSet({ filter: "-A FORWARD\n" });
    expect(order({ iptables, nftables: [first, second] })).toEqual(["ip b FORWARD", "ip a FORWARD", "filter FORWARD"]);
  });

  test("of another family's tables none is asked", () => {
    const table = tableOf({ "forward filter": [drop] }, [], { family: "ip6" });
    expect(only({ nftables: [table] }).verdict).toBe("accept");
  });
});

describe("translation", () => {
  const to = (address: string, name: string, priority: number) =>
    tableOf({ [`prerouting nat ${priority}`]: [dnatTo("ip", address, 80)] }, [], { name });

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
    const accepting = tableOf({ "prerouting nat -105": [accept] }, [], { name: "early" });
    expect(only({ nftables: [accepting, to("10.144.1.1", "late", -90)] }).destination.address).toBe("10.144.1.1");
  });

  test("happens at nat's place, whatever the chain's own priority", () => {
    const table = tableOf({
      "prerouting filter -95": [[...statements.addressIn("ip", "daddr", "10.144.1.1"), ...drop]],
      "prerouting nat -90": [dnatTo("ip", "10.144.1.1", 80)],
    });
    expect(only({ nftables: [table] }).verdict).toBe("drop");
  });

  test("only the first packet of a connection asks for it", () => {
    const rules = { nftables: [to("10.144.1.1", "t", -100)] };
    expect(only(rules, packet({ state: "ESTABLISHED" })).translated).toBe(false);
  });

  test("of the host's own packets is in output, and they are masqueraded as any", () => {
    const table = tableOf({
      "output nat": [dnatTo("ip", "10.144.1.1", 80)],
      "postrouting nat": [statements.MASQUERADE],
    });
    expect(only({ nftables: [table] }, ownPacket())).toMatchObject({
      destination: { address: "10.144.1.1" },
      masqueraded: true,
      path: "output",
    });
  });
});

describe("random choices", () => {
  const endpoints = setOf(
    "endpoints-4",
    [...FRONTEND_TYPES, "integer"],
    [0, 1, 2].map((slot) => [frontendKey("10.0.0.1", "tcp", 80, slot), socketValue(`10.144.1.${slot}`, 8080)] as const),
    { data: ["ipv4_addr", "inet_service"] },
  );

  /** Draws among so many slots, and translates where the slot has an endpoint. */
  function drawing(modulus: number): readonly Expression[] {
    const { expressions, next } = loadKey("ip", ["daddr", "l4proto", "dport"]);
    return [
      ...expressions,
      { kind: "numgen", modulus, to: next },
      { kind: "lookup", set: "endpoints-4", from: 0, to: 0 },
      { kind: "nat", family: "ip", address: 0, port: 1 },
    ];
  }

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
    const map = setOf(
      "m",
      ["integer"],
      [0, 1, 2, 3].map((slot) => [hostHex(slot), goTo(slot < 3 ? "a" : "b")] as const),
      {
        data: "verdict",
      },
    );
    const choose: readonly Expression[] = [
      { kind: "numgen", modulus: 4, to: 0 },
      { kind: "lookup", set: "m", from: 0, to: "verdict" },
    ];
    const table = tableOf({ "forward filter": [choose], a: [drop], b: [accept] }, [map]);
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
  const problem = "bytes 1 to 1 of its network header are not known";

  test("is an error that names the rule", () => {
    const table = tableOf({ "forward filter": [[...service, ...drop]] });
    expect(() => only({ nftables: [table] })).toThrow(`${problem}: rule 1 of ip t forward filter: @nh,8,8 0x40 drop`);
  });

  test("is explored both ways, and told", () => {
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
    ["tcp flags syn", 2],
    ['{"match":{"op":"==","left":{"meta":{"key":"skuid"}},"right":0}}', 2],
    ['log prefix "seen"', 1],
  ])("%s, of which only the text is known, lets the packet on, or both ways are taken", (text, ways) => {
    const table = tableOf({ "forward filter": [[{ kind: "unknown", text }, ...drop]] });
    const { outcomes, undecided } = explore({ nftables: [table] }, packet(), HOST);
    expect(outcomes).toHaveLength(ways);
    expect(outcomes.some(({ verdict: end }) => end === "drop")).toBe(true);
    expect(undecided).toEqual([]);
  });

  test.each([
    "snat to 192.0.2.1",
    "queue to 1",
    "meta mark set ct mark",
    "icmp type vmap { echo-request : accept }",
    '{"xt":{"type":"target","name":"LOG"}}',
  ])("%s may do anything: the way ends there", (text) => {
    const table = tableOf({ "forward filter": [[{ kind: "unknown", text }, ...drop]] });
    const { outcomes, undecided } = explore({ nftables: [table] }, packet(), HOST);
    expect(outcomes).toEqual([]);
    expect(undecided).toMatchObject([{ problem: { problem: `the tracer does not know "${text}"` } }]);
  });

  test("a set or a verdict that is not known leads nowhere", () => {
    const unknown = lookUp("ip", ["daddr"], "nowhere");
    const { undecided } = explore({ nftables: [tableOf({ "forward filter": [unknown] })] }, packet(), HOST);
    expect(undecided).toMatchObject([{ problem: { problem: "there is no set nowhere", table: "ip t" } }]);
  });
});

test("a rule set in which iptables only is known is what it was", () => {
  const rules = ruleSet({ nat: "-A PREROUTING -j DNAT --to-destination 10.144.1.3:80\n" });
  expect(trace({ iptables: rules }, packet(), HOST)).toEqual(trace(rules, packet(), HOST));
  expect(places(rules, packet())).toEqual(["→ 10.144.1.3:80"]);
});
