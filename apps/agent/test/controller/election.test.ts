import { settled, VirtualClock } from "@fairlead/base/testing";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Election, type Leadership, type LeasePort } from "../../src/controller/election.ts";

/** The API server's Lease: what is written over another version is refused. */
class Lease {
  stored: { readonly record: unknown; readonly version: string } | undefined;
  down = false;
  /** Requests that get no answer, and no refusal either. */
  silent = 0;

  port(isPaused: () => boolean = () => false): LeasePort {
    const answer = () => {
      // A paused process reads no answers.
      if (this.down || isPaused()) throw new Error("no answer");
    };
    return {
      read: async () => {
        answer();
        this.silent -= 1;
        if (this.silent >= 0) await new Promise(() => {});
        return this.stored as Awaited<ReturnType<LeasePort["read"]>>;
      },
      write: async (record, version) => {
        answer();
        if (version !== this.stored?.version) throw new Error("409 Conflict");
        this.stored = { record, version: String(Number(version ?? 0) + 1) };
      },
    };
  }
}

/** One process: whether it leads, as it would ask before a write. */
class Candidate {
  paused = false;
  leadership: Leadership | undefined;
  readonly errors: unknown[] = [];
  readonly stop = new AbortController();
  readonly done: Promise<void>;

  constructor(identity: string, lease: Lease, clock: VirtualClock, random: () => number = () => 0) {
    const options = { identity, clock, random, onError: (error: unknown) => void this.errors.push(error) };
    const election = new Election({ ...options, lease: lease.port(() => this.paused) });
    this.done = election.run(async (leadership) => {
      this.leadership = leadership;
      await new Promise<void>((end) => leadership.signal.addEventListener("abort", () => end()));
      this.leadership = undefined;
    }, this.stop.signal);
  }

  get leads(): boolean {
    return this.leadership?.holds() === true;
  }
}

function two() {
  const [clock, lease] = [new VirtualClock(), new Lease()];
  return { clock, lease, a: new Candidate("a", lease, clock), b: new Candidate("b", lease, clock) };
}

const leaders = (...all: readonly Candidate[]) => all.filter(({ leads }) => leads).length;

describe("leader election", () => {
  test("the first takes the lease and keeps it, as client-go writes it", async () => {
    const { clock, lease, a, b } = two();
    await clock.advance(60_000);
    expect([a.leads, b.leads]).toEqual([true, false]);
    expect(lease.stored?.record).toEqual({
      holderIdentity: "a",
      leaseDurationSeconds: 15,
      acquireTime: "2030-01-01T00:00:00.000000Z",
      renewTime: "2030-01-01T00:01:00.000000Z",
      leaseTransitions: 0,
    });
  });

  test("an end releases it: another leads within its next try", async () => {
    const { clock, lease, a, b } = two();
    await clock.advance(10_000);
    a.stop.abort();
    await a.done;
    await clock.advance(2000);
    expect(b.leads).toBe(true);
    expect(lease.stored?.record).toMatchObject({ holderIdentity: "b", leaseTransitions: 1 });
  });

  test("a leader that is paused writes no more when it goes on, and steps down", async () => {
    const { clock, a, b } = two();
    await clock.advance(10_000);
    const before = a.leadership;
    a.paused = true;
    await clock.advance(17_500);
    expect(b.leads).toBe(true);
    a.paused = false;
    expect(before?.holds()).toBe(false);
    await clock.advance(4000);
    expect([a.leads, b.leads]).toEqual([false, true]);
    expect(before?.signal.aborted).toBe(true);
  });

  test("without an API server the leader gives up after 10 s, and leads again when that is back", async () => {
    const { clock, lease, a, b } = two();
    await clock.advance(10_000);
    lease.down = true;
    await clock.advance(9000);
    expect(leaders(a, b)).toBe(1);
    await clock.advance(2000);
    expect(leaders(a, b)).toBe(0);
    lease.down = false;
    await clock.advance(17_000);
    expect(leaders(a, b)).toBe(1);
    expect(a.errors.length).toBeGreaterThan(0);
  });

  test("one request without an answer does not cost the lease", async () => {
    const { clock, lease, a, b } = two();
    await clock.advance(10_000);
    const before = a.leadership;
    lease.silent = 1;
    for (let second = 0; second < 20; second += 1) {
      await clock.advance(1000);
      expect([a.leads, b.leads]).toEqual([true, false]);
    }
    expect(a.leadership).toBe(before);
    expect(a.errors).toEqual([new Error("no answer within 5 s")]);
  });

  test("another's clock is not believed: a lease with a time of last year is held while it changes", async () => {
    const [clock, lease] = [new VirtualClock(), new Lease()];
    const past = new VirtualClock(Date.UTC(2029, 0, 1));
    const [a, b] = [new Candidate("a", lease, past), new Candidate("b", lease, clock)];
    for (let second = 0; second < 60; second += 1) await Promise.all([past.advance(1000), clock.advance(1000)]);
    expect([a.leads, b.leads]).toEqual([true, false]);
  });

  test("what the work throws ends the election, and the lease is free", async () => {
    const [clock, lease] = [new VirtualClock(), new Lease()];
    const options = { identity: "a", clock, random: () => 0, onError: () => {}, lease: lease.port() };
    const failing = new Election(options).run(async () => {
      throw new Error("broken");
    }, new AbortController().signal);
    await expect(failing).rejects.toThrow("broken");
    expect(lease.stored?.record).toMatchObject({ holderIdentity: "" });
  });

  test("never do two lead at once, whatever pauses and fails", async () => {
    const event = fc.record({
      wait: fc.integer({ min: 100, max: 20_000 }),
      what: fc.constantFrom("pause 0", "pause 1", "pause 2", "resume 0", "resume 1", "resume 2", "down", "up"),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 20 }), async (events) => {
        const [clock, lease] = [new VirtualClock(), new Lease()];
        const all = ["a", "b", "c"].map((name, i) => new Candidate(name, lease, clock, () => i / 3));
        for (const { wait, what } of events) {
          const [word, at] = what.split(" ");
          const one = all[Number(at)];
          if (one === undefined) lease.down = word === "down";
          else one.paused = word === "pause";
          for (let passed = 0; passed < wait; passed += 500) {
            await clock.advance(Math.min(500, wait - passed));
            expect(leaders(...all)).toBeLessThanOrEqual(1);
          }
        }
        lease.down = false;
        for (const one of all) one.paused = false;
        await clock.advance(25_000);
        expect(leaders(...all)).toBe(1);
        for (const one of all) one.stop.abort();
        await settled();
      }),
      {
        numRuns: runs(20),
        examples: [
          [
            [
              { what: "up", wait: 5000 },
              { what: "pause 0", wait: 20_000 },
            ],
          ],
        ],
      },
    );
  });
});
