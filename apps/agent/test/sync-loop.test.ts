import { settled, VirtualClock } from "@fairlead/base/testing";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type SyncKind, SyncLoop, type SyncLoopSettings } from "../src/sync/sync-loop.ts";

const SETTINGS: SyncLoopSettings = {
  minInterval: 1_000,
  checkInterval: 30_000,
  fullInterval: 3_600_000,
};

interface Run {
  readonly kind: SyncKind;
  readonly from: number;
  /** Place among all runs and requests, which times do not show. */
  readonly order: number;
  to?: number;
  retryIn?: number | undefined;
}

interface Outcome {
  readonly ms: number;
  readonly retryIn?: number | undefined;
}

/** A loop whose work notes every run, takes as long and asks for a retry as `outcome` says. */
function recordedLoop(outcome: (run: number) => Outcome = () => ({ ms: 0 })) {
  const clock = new VirtualClock();
  const runs: Run[] = [];
  const checks: number[] = [];
  const state = { intact: true, atOnce: 0, mostAtOnce: 0, order: 0 };
  const loop = new SyncLoop(
    SETTINGS,
    {
      async sync(kind) {
        const run: Run = { kind, from: clock.monotonic(), order: state.order++ };
        const { ms, retryIn } = outcome(runs.push(run) - 1);
        state.mostAtOnce = Math.max(state.mostAtOnce, ++state.atOnce);
        if (ms > 0) await new Promise<void>((resolve) => clock.after(ms, resolve));
        state.atOnce--;
        run.to = clock.monotonic();
        run.retryIn = retryIn;
        return retryIn;
      },
      async check() {
        state.mostAtOnce = Math.max(state.mostAtOnce, ++state.atOnce);
        checks.push(clock.monotonic());
        state.atOnce--;
        return state.intact;
      },
    },
    clock,
  );
  return { clock, loop, runs, checks, state };
}

describe("SyncLoop", () => {
  test("nothing runs before start, the first sync is full and at once", async () => {
    const { clock, loop, runs } = recordedLoop();
    loop.request("partial");
    await clock.advance(10_000);
    expect(runs).toEqual([]);
    loop.start();
    await settled();
    expect(runs).toMatchObject([{ kind: "full", from: 10_000 }]);
  });

  test("an idle loop applies a change at once, a burst waits for minInterval and is taken together", async () => {
    const { clock, loop, runs } = recordedLoop();
    loop.start();
    await clock.advance(5_000);
    loop.request("partial");
    await clock.advance(1);
    for (let i = 0; i < 5; i++) loop.request("partial");
    await clock.advance(998);
    expect(runs.map((run) => run.from)).toEqual([0, 5_000]);
    await clock.advance(10_000);
    expect(runs.map((run) => [run.kind, run.from])).toEqual([
      ["full", 0],
      ["partial", 5_000],
      ["partial", 6_000],
    ]);
  });

  test("minInterval counts from the end of a run", async () => {
    const { clock, loop, runs } = recordedLoop(() => ({ ms: 4_000 }));
    loop.start();
    await clock.advance(100);
    loop.request("partial");
    await clock.advance(20_000);
    expect(runs.map((run) => run.from)).toEqual([0, 5_000]);
  });

  test("a retry that the work asks for comes in its time, changes do not wait for it", async () => {
    const { clock, loop, runs } = recordedLoop((run) => ({ ms: 0, retryIn: run === 1 ? 8_000 : undefined }));
    loop.start();
    await clock.advance(2_000);
    loop.request("partial");
    await clock.advance(3_000);
    expect(runs.map((run) => run.from)).toEqual([0, 2_000]);
    await clock.advance(20_000);
    expect(runs.map((run) => [run.kind, run.from])).toEqual([
      ["full", 0],
      ["partial", 2_000],
      ["partial", 10_000],
    ]);
  });

  test("looks every checkInterval and syncs everything when something is missing", async () => {
    const { clock, loop, runs, checks, state } = recordedLoop();
    loop.start();
    await clock.advance(60_000);
    expect(checks).toEqual([30_000, 60_000]);
    expect(runs).toHaveLength(1);
    state.intact = false;
    await clock.advance(30_000);
    expect(runs.map((run) => [run.kind, run.from])).toEqual([
      ["full", 0],
      ["full", 90_000],
    ]);
  });

  test("looks at once when asked, and a checkInterval later again", async () => {
    const { clock, loop, checks } = recordedLoop();
    loop.start();
    await clock.advance(10_000);
    loop.requestCheck();
    await clock.advance(30_000);
    expect(checks).toEqual([10_000, 40_000]);
  });

  test("that is asked for while all is written comes right after it", async () => {
    const { clock, loop, checks } = recordedLoop(() => ({ ms: 5_000 }));
    loop.start();
    await clock.advance(2_000);
    loop.requestCheck();
    await clock.advance(10_000);
    expect(checks).toEqual([6_000]);
  });

  test("looks the earlier the longer writing takes, so that all is there again within checkInterval", async () => {
    const { clock, loop, runs, checks, state } = recordedLoop(() => ({ ms: 5_000 }));
    loop.start();
    await clock.advance(25_000);
    expect(checks).toEqual([25_000]);
    state.intact = false;
    await clock.advance(30_000);
    // The last one says whether writing has helped.
    expect(checks).toEqual([25_000, 45_000, 51_000]);
    expect(runs[1]).toMatchObject({ kind: "full", from: 45_000, to: 50_000 });
  });

  test("steady change does not keep the check off", async () => {
    const { clock, loop, checks } = recordedLoop();
    loop.start();
    for (let i = 0; i < 400; i++) {
      loop.request("partial");
      await clock.advance(250);
    }
    expect(checks).toHaveLength(3);
  });

  test("a full sync comes once an hour without a reason", async () => {
    const { clock, loop, runs } = recordedLoop();
    loop.start();
    await clock.advance(2 * 3_600_000 + 60_000);
    expect(runs.map((run) => run.kind)).toEqual(["full", "full", "full"]);
    expect(runs[1]?.from).toBe(3_600_000);
  });

  test("stop waits for what runs and starts nothing more", async () => {
    const { clock, loop, runs } = recordedLoop(() => ({ ms: 500 }));
    loop.start();
    await clock.advance(100);
    loop.request("partial");
    let stopped = false;
    const stopping = loop.stop().then(() => {
      stopped = true;
    });
    await clock.advance(399);
    expect(stopped).toBe(false);
    await clock.advance(10_000);
    await stopping;
    expect(runs).toHaveLength(1);
    expect(clock.pending.length).toBe(0);
  });

  test("no request is lost, never two runs at once, the intervals hold", async () => {
    const step = fc.oneof(
      fc.record({ advance: fc.integer({ min: 0, max: 40_000 }) }),
      fc.record({ request: fc.constantFrom<SyncKind>("partial", "full") }),
    );
    const outcome = fc.record({
      ms: fc.integer({ min: 0, max: 9_000 }),
      retryIn: fc.option(fc.integer({ min: 0, max: 20_000 }), { nil: undefined }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), fc.array(outcome, { minLength: 1, maxLength: 20 }), run),
      { numRuns: runs(60) },
    );
  });
});

type Step = { advance: number } | { request: SyncKind };

async function run(steps: Step[], outcomes: Outcome[]): Promise<void> {
  const { clock, loop, runs, state } = recordedLoop((i) => outcomes[i] ?? { ms: 0 });
  const requests: { kind: SyncKind; order: number; at: number }[] = [];
  loop.start();
  for (const step of steps) {
    if ("advance" in step) {
      await clock.advance(step.advance);
    } else {
      requests.push({ kind: step.request, order: state.order++, at: clock.monotonic() });
      loop.request(step.request);
      await settled();
    }
  }
  await clock.advance(outcomes.length * 30_000 + 30_000);
  await loop.stop();

  expect(state.mostAtOnce).toBe(1);
  for (const { kind, order, at } of requests) {
    const served = runs.find((r) => r.order > order && (kind === "partial" || r.kind === "full"));
    expect(served, `the ${kind} request ${order}`).toBeDefined();
    expect(served?.from).toBeLessThanOrEqual(at + 9_000 + SETTINGS.minInterval);
  }
  for (const [i, current] of runs.entries()) {
    const before = runs[i - 1];
    if (before?.to === undefined) continue;
    expect(current.from - before.to).toBeGreaterThanOrEqual(SETTINGS.minInterval);
    if (before.retryIn === undefined) continue;
    expect(current.from - before.to).toBeLessThanOrEqual(Math.max(SETTINGS.minInterval, before.retryIn));
  }
}
