import { settled, until, VirtualClock } from "@fairlead/base/testing";
import { node, type RawObject } from "@fairlead/testkit";
import { describe, expect, test } from "vitest";
import type { FamilyOutcome } from "../src/sync/family-sync.ts";
import { afterStart, tidying } from "../src/sync/follower.ts";
import { runOf, SYNCED } from "./support/fake-node.ts";
import { freePort } from "./support/http.ts";
import { runningAgent, web } from "./support/running-agent.ts";

test("once, after the first sync that is complete", () => {
  let called = 0;
  const follower = afterStart(() => called++);
  const ran = (outcome: FamilyOutcome) => follower.ran?.(runOf(outcome));
  ran({ kind: "failed", sync: "full", error: new Error("refused"), milliseconds: 1, retryIn: 1 });
  ran({ kind: "unchanged" });
  expect(called).toBe(0);
  ran(SYNCED);
  ran(SYNCED);
  expect(called).toBe(1);
});

test("once for all syncs of half a minute, and not while nothing is synced", async () => {
  const clock = new VirtualClock();
  const tidied: number[] = [];
  const follower = tidying(clock, () => tidied.push(clock.monotonic()));
  const ran = (outcome: FamilyOutcome) => follower.ran?.(runOf(outcome));
  ran({ kind: "unchanged" });
  await clock.advance(60_000);
  expect(tidied).toEqual([]);
  ran(SYNCED);
  await clock.advance(10_000);
  ran(SYNCED);
  await clock.advance(600_000);
  expect(tidied).toEqual([90_000]);
  ran(SYNCED);
  await clock.advance(30_000);
  expect(tidied).toEqual([90_000, 700_000]);
});

describe("first sync", () => {
  const SLOW_MS = 20_000;
  const nodeA = node("node-a", { addresses: ["10.201.0.10", "fd00::10"] });

  /** Both families, the first of which takes its time over the first restore. */
  async function slowIPv4(signal: AbortSignal, flags: readonly string[]) {
    const healthPort = await freePort();
    const one = await runningAgent({ families: ["IPv4", "IPv6"], flags, healthPort });
    one.faults.IPv4.onCall(({ argv: [program] }) =>
      program.endsWith("-restore") ? { kind: "delay", ms: SLOW_MS } : undefined,
    );
    await until(signal, () =>
      one.log.lines.some(({ message, fields }) => message === "Listening" && fields["server"] === "health"),
    );
    const ask = async (path: string) => {
      const answer = await fetch(`http://127.0.0.1:${healthPort}${path}`);
      return { code: answer.status, ...((await answer.json()) as object) };
    };
    return { one, ask };
  }

  test.for<[string, readonly string[], readonly RawObject[]]>([
    ["from the API server", [], [nodeA]],
    ["from manifests, which may do without a Node", ["--manifests=/dev/null/none"], []],
  ])(
    "/healthz is 503 until each family's first rules are in place: %s",
    async ([_what, flags, objects], { signal }) => {
      const { one, ask } = await slowIPv4(signal, flags);
      expect(await ask("/healthz")).toMatchObject({ code: 503, rulesInPlace: false, healthy: true });
      expect(await ask("/livez")).toMatchObject({ code: 200, healthy: true });

      await one.list(web, ...objects);
      await settled();
      await one.clock.advance(SLOW_MS - 5_000);
      expect(one.nat("IPv4")).toEqual([]);
      expect(one.nat("IPv6")).not.toEqual([]);
      expect(await ask("/healthz")).toMatchObject({
        code: 503,
        nodeEligible: true,
        rulesInPlace: false,
        healthy: true,
      });
      expect(await ask("/livez")).toMatchObject({ code: 200, healthy: true });

      await until(signal, () => one.nat("IPv4").length > 0, one.clock);
      await one.clock.advance(2 * SLOW_MS);
      const served = await ask("/healthz");
      expect(served).toMatchObject({ code: 200, nodeEligible: true, healthy: true });
      expect(served).not.toHaveProperty("rulesInPlace");
    },
  );
});
