import { sleep } from "@fairlead/base";
import { settled, VirtualClock } from "@fairlead/base/testing";
import { expect, test } from "vitest";
import { type HeldBy, HeldByAnother, type HolderPort, whileHolding } from "../../src/migrate/hold.ts";

/** What the API server keeps: a write on top of something older is refused. */
class Record implements HolderPort {
  held: HeldBy | undefined;
  #versions = 0;
  /** Each call fails as long as the API server is away. */
  away = false;

  async read(): Promise<HeldBy | undefined> {
    this.#reach();
    return this.held;
  }

  async write(holder: string, before: HeldBy | undefined): Promise<HeldBy | undefined> {
    this.#reach();
    if (this.held?.version !== before?.version) return undefined;
    this.#versions += 1;
    this.held = { holder, version: String(this.#versions) };
    return this.held;
  }

  async release(held: HeldBy): Promise<void> {
    this.#reach();
    if (this.held?.version === held.version) this.held = undefined;
  }

  #reach(): void {
    if (this.away) throw new Error("the API server is away");
  }
}

function stage() {
  const clock = new VirtualClock();
  const record = new Record();
  const working = new Set<string>();
  const waits: string[] = [];
  const { signal } = new AbortController();
  const onWait = (holder: string, ms: number) => waits.push(`${holder} ${ms}`);
  /** Works for so long, and never at the same time as another one. */
  const run = (holder: string, ms: number, given = signal) =>
    whileHolding(record, { holder, clock, onWait, signal: given }, async (lost) => {
      expect([...working]).toEqual([]);
      working.add(holder);
      await sleep(clock, ms, lost);
      working.delete(holder);
      return `${holder} has ended`;
    }).catch((error: Error) => error);
  return { clock, record, waits, run };
}

test("one after the other, and nothing is left behind", async () => {
  const { clock, record, waits, run } = stage();
  for (const holder of ["a", "b"]) {
    const ended = run(holder, 60_000);
    await clock.advance(60_000);
    expect(await ended).toBe(`${holder} has ended`);
    expect(record.held).toBeUndefined();
  }
  expect(waits).toEqual([]);
  expect(clock.pending.length).toBe(0);
});

test("the second of two at once changes nothing, and names the first", async () => {
  const { clock, run, waits } = stage();
  const first = run("a on host-a", 60_000);
  await settled();
  const second = run("b", 60_000);
  await clock.advance(60_000);
  expect(await second).toEqual(new HeldByAnother("a on host-a"));
  expect(waits).toEqual(["a on host-a 40000"]);
  expect(await first).toBe("a on host-a has ended");
});

test("two runs that start at the same moment: one of them works", async () => {
  const { clock, run } = stage();
  const both = [run("a", 10_000), run("b", 10_000)];
  await clock.advance(60_000);
  const ended = await Promise.all(both);
  expect(ended.filter((one) => one instanceof HeldByAnother)).toHaveLength(1);
});

test("a holder that was killed is given up after 40 s, by one of the runs that wait", async () => {
  const { clock, record, run } = stage();
  record.held = { holder: "killed", version: "0" };
  const both = [run("a", 10_000), run("b", 10_000)];
  await clock.advance(39_000);
  expect(record.held.holder).toBe("killed");
  await clock.advance(60_000);
  const ended = await Promise.all(both);
  expect(ended.filter((one) => one instanceof HeldByAnother)).toHaveLength(1);
  expect(record.held).toBeUndefined();
});

test("a holder that is known to be gone is replaced at once, one that runs is not waited for", async () => {
  const { clock, record, run, waits } = stage();
  record.held = { holder: "killed", version: "0", process: "gone" };
  const ended = run("a", 1_000);
  await clock.advance(1_000);
  expect(await ended).toBe("a has ended");

  record.held = { holder: "b", version: "0", process: "runs" };
  expect(await run("c", 1_000)).toEqual(new HeldByAnother("b"));
  expect(record.held.holder).toBe("b");
  expect(waits).toEqual([]);
});

test("a holder that is alive elsewhere is known within 5 s", async () => {
  const { clock, run } = stage();
  const first = run("a", 60_000);
  await clock.advance(1_000);
  const second = run("b", 1_000);
  await clock.advance(5_000);
  expect(await Promise.race([second, "still waiting"])).toEqual(new HeldByAnother("a"));
  await clock.advance(60_000);
  expect(await first).toBe("a has ended");
});

test("the API server may be away for a while; for longer, or when another holder has taken over, it is lost", async () => {
  const { clock, record, run } = stage();
  const short = run("a", 60_000);
  await clock.advance(5_000);
  record.away = true;
  await clock.advance(20_000);
  record.away = false;
  await clock.advance(60_000);
  expect(await short).toBe("a has ended");

  const long = run("b", 600_000);
  await clock.advance(5_000);
  record.away = true;
  await clock.advance(60_000);
  expect(await long).toEqual(new Error("the API server is away"));
  record.away = false;
  record.held = undefined;

  const taken = run("c", 600_000);
  await clock.advance(5_000);
  record.held = { holder: "d", version: "d" };
  await clock.advance(60_000);
  expect(await taken).toEqual(new HeldByAnother("another run, which took over"));
  expect(record.held.holder).toBe("d");
});

test("interrupted while it waits, it ends", async () => {
  const { clock, record, run } = stage();
  record.held = { holder: "other", version: "0" };
  const stop = new AbortController();
  const ended = run("a", 10_000, stop.signal);
  await clock.advance(5_000);
  stop.abort();
  expect(await ended).toEqual(new HeldByAnother("other"));
  expect(record.held.holder).toBe("other");
});
