import { VirtualClock } from "@fairlead/base/testing";
import type { Difference } from "@fairlead/core";
import { expect, test } from "vitest";
import { Differences } from "../src/sync/differences.ts";
import { recordedLog } from "./support/recorded-log.ts";

const CHANGED: Difference = { what: ["chain KUBE-SERVICES"], by: ["nft (4711)"], repaired: false };
/** No other program is known to have changed the rules. */
const FLUSHED: Difference = { what: ["chain KUBE-SERVICES"], repaired: false };

function made() {
  const clock = new VirtualClock();
  const log = recordedLog();
  return { clock, log, differences: new Differences(clock, log) };
}

test("what differs is written again each time that it was right in between, and is logged every ten seconds", async () => {
  const { clock, log, differences } = made();
  for (let time = 0; time < 100; time++) {
    expect(differences.found("IPv4", CHANGED)).toBe(true);
    differences.none("IPv4");
    await clock.advance(100);
  }
  expect(log.lines).toMatchObject([
    { level: "warn", fields: { ipFamily: "IPv4", differs: "chain KUBE-SERVICES", by: "nft (4711)" } },
  ]);
  await clock.advance(10_000);
  differences.found("IPv4", FLUSHED);
  expect(log.lines).toHaveLength(2);
});

test("what another program changes again before it was found right is written at once", () => {
  const { differences, log } = made();
  for (let time = 0; time < 3; time++) expect(differences.found("IPv4", CHANGED)).toBe(true);
  expect(differences.found("IPv4", FLUSHED)).toBe(false);
  expect(log.lines.filter(({ level }) => level === "error")).toHaveLength(1);
});

test("what still differs right after it was written is written again later and later", async () => {
  const { clock, log, differences } = made();
  const written: number[] = [];
  const hour = 3_600_000;
  for (; clock.monotonic() < 3 * hour; await clock.advance(30_000)) {
    if (!differences.found("IPv4", FLUSHED)) continue;
    written.push(clock.monotonic() / 60_000);
    expect(differences.found("IPv4", FLUSHED)).toBe(false);
  }
  expect(written).toEqual([0, 1, 3, 7, 15, 31, 63, 123]);
  expect(log.lines.filter(({ level }) => level === "error")).toHaveLength(written.length);
});

test("another difference is written at once, and the other family's is its own", () => {
  const { differences } = made();
  differences.found("IPv4", FLUSHED);
  expect(differences.found("IPv4", FLUSHED)).toBe(false);
  expect(differences.found("IPv6", FLUSHED)).toBe(true);
  expect(differences.found("IPv4", { ...FLUSHED, what: ["the table is missing"] })).toBe(true);
});

test("what a mode has put right itself asks for nothing, however often", () => {
  const { differences, log } = made();
  for (let time = 0; time < 3; time++) {
    expect(differences.found("IPv4", { ...FLUSHED, repaired: true })).toBe(false);
  }
  expect(log.lines).toHaveLength(1);
});

test("a line names five of what differs", () => {
  const { differences, log } = made();
  differences.found("IPv4", { what: Array.from({ length: 8 }, (_, at) => `chain ${at}`), repaired: false });
  expect(log.lines[0]?.fields).toEqual({
    ipFamily: "IPv4",
    differs: "chain 0; chain 1; chain 2; chain 3; chain 4; 3 more",
  });
});
