import { describe, expect, test } from "vitest";
import { trace } from "../src/index.ts";
import { HOST, packet, ruleSet } from "./rule-set.ts";

const TO_A = "-j DNAT --to-destination 10.144.1.5:8080";
const TO_B = "-j DNAT --to-destination 10.144.2.6:8080";
const HALF = "-m statistic --mode random --probability 0.5";

/** The destination, verdict, share and rules of every way. */
function ways(nat: readonly string[], forward: readonly string[]): readonly string[] {
  const rules = ruleSet({
    nat: nat.map((rule) => `-A PREROUTING -p tcp ${rule}\n`).join(""),
    filter: forward.map((rule) => `-A FORWARD ${rule}\n`).join(""),
  });
  return trace(rules, packet(), HOST)
    .map(({ destination, verdict, probability, visits }) => {
      const visited = visits.map(({ table, index }) => `${table} ${index}`).join(", ");
      return `${destination.address} ${verdict} ${probability}: ${visited}`;
    })
    .toSorted();
}

describe("ways that come to a hook alike", () => {
  test("go on alike, each with its share and the rules that led it there", () => {
    const draws = [`${HALF} ${TO_A}`, `${HALF} ${TO_A}`, `${HALF} ${TO_B}`, TO_A];
    expect(ways(draws, ["-d 10.144.1.5 -p tcp", "-d 10.144.2.6 -j DROP", "-p tcp"])).toEqual([
      "10.144.1.5 accept 0.125: nat 3, filter 0, filter 2",
      "10.144.1.5 accept 0.25: nat 1, filter 0, filter 2",
      "10.144.1.5 accept 0.5: nat 0, filter 0, filter 2",
      "10.144.2.6 drop 0.125: nat 2, filter 1",
    ]);
  });

  test("may part again behind it", () => {
    expect(ways([`${HALF} ${TO_A}`, TO_A], [`${HALF} -j DROP`, "-p tcp"])).toEqual([
      "10.144.1.5 accept 0.25: nat 0, filter 1",
      "10.144.1.5 accept 0.25: nat 1, filter 1",
      "10.144.1.5 drop 0.25: nat 0, filter 0",
      "10.144.1.5 drop 0.25: nat 1, filter 0",
    ]);
  });

  test.each([
    ["their marks", "-j MARK --set-xmark 0x1/0x1", "-m mark --mark 0x1/0x1 -j DROP"],
    ["what they left in lists", "-m recent --name L --set", "-m recent --name L --rcheck -j DROP"],
  ])("are no longer alike where %s differ", (_, leave, ask) => {
    const rules = [`${HALF} -g marked`, TO_A];
    const nat = `${rules.map((rule) => `-A PREROUTING -p tcp ${rule}\n`).join("")}-A marked ${leave}\n-A marked -p tcp ${TO_A}\n`;
    const outcomes = trace(ruleSet({ nat, filter: `-A FORWARD ${ask}\n` }), packet(), HOST);
    expect(outcomes.map(({ verdict, probability }) => [verdict, probability]).toSorted()).toEqual([
      ["accept", 0.5],
      ["drop", 0.5],
    ]);
  });
});
