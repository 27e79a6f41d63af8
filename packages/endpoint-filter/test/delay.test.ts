import { VirtualClock } from "@fairlead/base/testing";
import type { Ownership } from "@fairlead/core";
import fc from "fast-check";
import { expect, test } from "vitest";
import { createEndpointFilter, OwnershipDelay } from "../src/index.ts";
import { endpointsAt, service } from "./service.ts";

const SERVICE = service();
const OURS = ["10.144.0.1"];
const THEIRS = ["10.16.0.1"];
const MIXED = [...OURS, ...THEIRS];

/** A service that is decided whenever its endpoints move, with the memory of the decision before. */
function deciding(delayMs = 10_000) {
  const clock = new VirtualClock();
  const delay = new OwnershipDelay(delayMs, clock);
  const filter = createEndpointFilter({
    excludeCIDRs: ["10.16.0.0/16"],
    mixedServices: "own-endpoints",
    excludedFrontends: "all",
    ownershipAnnotation: true,
  });
  let remembered: Ownership | undefined;
  let addresses: readonly string[] = [];
  let changes = 0;
  const move = (to: readonly string[]) => {
    addresses = to;
    const decision = delay.around(filter).decide(SERVICE, "IPv4", endpointsAt(addresses), remembered);
    if (decision.decided) {
      if (remembered !== undefined && remembered !== decision.ownership) changes++;
      remembered = decision.ownership;
    }
    return decision;
  };
  delay.start(() => {
    if (delay.due().length > 0) move(addresses);
  });
  return { clock, delay, filter, move, owner: () => remembered, changes: () => changes };
}

test.each([
  ["ours", OURS],
  ["mixed", MIXED],
] as const)(
  "%s, and the last endpoint here went: it keeps its owner for a while, and has all its endpoints",
  (was, from) => {
    const { clock, move, owner } = deciding();
    move(from);
    const decision = move(THEIRS);
    expect(decision).toMatchObject({
      ownership: was,
      frontends: "all",
      why: expect.stringContaining("for up to 10 s"),
    });
    expect(decision).not.toHaveProperty("excludes");
    clock.advanceNow(9_999);
    expect(owner()).toBe(was);
    clock.advanceNow(1);
    expect(owner()).toBe("foreign");
  },
);

test("first endpoints, those that come here, and what has none decide at once", () => {
  const { move, owner, clock } = deciding();
  for (const [addresses, expected] of [
    [THEIRS, "foreign"],
    [MIXED, "mixed"],
    [[], "mixed"],
    [OURS, "ours"],
  ] as const) {
    move(addresses);
    expect(owner()).toBe(expected);
  }
  expect(clock.pending).toEqual([]);
});

test("an endpoint that comes back ends the waiting", () => {
  const { clock, move, owner } = deciding();
  move(MIXED);
  move(THEIRS);
  clock.advanceNow(9_000);
  move(MIXED);
  move(THEIRS);
  clock.advanceNow(9_000);
  expect(owner()).toBe("mixed");
});

test("what CIDRs decide otherwise than before changes hands at once; so does everything without a delay", () => {
  const { delay, move, owner } = deciding();
  move(OURS);
  delay.exempt(new Set(["default/web"]));
  move(THEIRS);
  expect(owner()).toBe("foreign");
  const { move: moved, owner: now, delay: none, filter } = deciding(0);
  moved(OURS);
  moved(THEIRS);
  expect(now()).toBe("foreign");
  expect(none.around(filter)).toBe(filter);
});

test("a service that is gone does not wait: it is due at no sync", () => {
  const { clock, delay, move } = deciding();
  const forgotten = { service: "default/web", family: "IPv4" } as const;
  move(OURS);
  move(THEIRS);
  delay.forget([
    { ...forgotten, ownership: "ours" },
    { ...forgotten, family: "IPv6" },
  ]);
  expect(clock.pending).toHaveLength(1);
  delay.forget([forgotten]);
  expect(clock.pending).toEqual([]);
  clock.advanceNow(20_000);
  expect(delay.due()).toEqual([]);
});

test("the same filter is delayed by the same one", () => {
  const { delay, filter } = deciding();
  expect(delay.around(filter)).toBe(delay.around(filter));
});

test("however a service's endpoints flap, it is given away at most once in a delay, and ends where it belongs", () => {
  const event = fc.record({ to: fc.constantFrom(OURS, THEIRS, MIXED), wait: fc.integer({ min: 0, max: 4_000 }) });
  fc.assert(
    fc.property(fc.array(event, { maxLength: 30 }), (events) => {
      const { clock, move, owner } = deciding();
      let gaveAway = Number.NEGATIVE_INFINITY;
      let before = owner();
      const look = () => {
        if (owner() === "foreign" && before !== undefined && before !== "foreign") {
          expect(clock.monotonic() - gaveAway).toBeGreaterThanOrEqual(10_000);
          gaveAway = clock.monotonic();
        }
        before = owner();
      };
      for (const { to, wait } of events) {
        move(to);
        look();
        for (let ms = 0; ms < wait; ms += 500) {
          clock.advanceNow(500);
          look();
        }
      }
      clock.advanceNow(10_000);
      const last = events.at(-1)?.to;
      const expected = { ours: OURS, mixed: MIXED, foreign: THEIRS } as const;
      if (last !== undefined) expect(expected[owner() ?? "ours"]).toBe(last);
    }),
  );
});
