import { expect, test } from "vitest";
import { type Difference, DifferenceTracker, Rounds } from "../../../src/index.ts";

const GRACE = 5_000;
const subject = { id: "a", family: "IPv4", name: "default/web" } as const;
const differences: readonly Difference[] = [{ kind: "missing", packet: "p", wanted: "w", found: "f" }];
const agreed: readonly Difference[] = [];

test("what agrees before the grace is over is no news; afterwards it is", () => {
  const suspicions = new DifferenceTracker(GRACE);
  suspicions.seen(subject, differences, 0);
  expect(suspicions.seen(subject, agreed, 1_000)).toBeUndefined();
  suspicions.seen(subject, differences, 2_000);
  expect(suspicions.seen(subject, differences, 6_000)).toBeUndefined();
  expect(suspicions.seen(subject, differences, 7_000)).toMatchObject({ kind: "differs" });
  expect(suspicions.seen(subject, agreed, 8_000)).toMatchObject({ kind: "agrees" });
  expect(suspicions.all).toEqual([]);
});

test("the grace begins anew with each change of what is wanted, and not once it is reported", () => {
  const suspicions = new DifferenceTracker(GRACE);
  suspicions.seen(subject, differences, 0);
  suspicions.changed("a", 4_000);
  expect(suspicions.seen(subject, differences, 6_000)).toBeUndefined();
  expect(suspicions.seen(subject, differences, 9_000)).toMatchObject({ kind: "differs" });
  suspicions.changed("a", 10_000);
  expect(suspicions.seen(subject, differences, 10_500)).toBeUndefined();
  expect(suspicions.all).toMatchObject([{ lasting: true, since: 4_000 }]);
});

test("the next that can become news is the one that has differed for longest", () => {
  const suspicions = new DifferenceTracker(5_000);
  expect(suspicions.nextIn(0)).toBeUndefined();
  suspicions.seen(subject, differences, 1_000);
  suspicions.seen({ ...subject, id: "later" }, differences, 3_000);
  expect(suspicions.nextIn(4_000)).toBe(2_000);
  suspicions.seen(subject, differences, 6_000);
  expect(suspicions.nextIn(6_000)).toBe(2_000);
  suspicions.seen({ ...subject, id: "later" }, [], 7_000);
  expect(suspicions.nextIn(7_000)).toBeUndefined();
});

test("a round gives each one once, and what is urgent separately", () => {
  const rounds = new Rounds();
  expect(rounds.next()).toBeUndefined();
  rounds.begin(["a", "b"]);
  rounds.hurry("b");
  expect(rounds.takeUrgent()).toEqual(["b"]);
  expect(rounds.urgent).toBe(false);
  expect([rounds.next(), rounds.open, rounds.next(), rounds.next(), rounds.open]).toEqual([
    "a",
    true,
    "b",
    undefined,
    false,
  ]);
});
