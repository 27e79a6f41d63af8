import { mkdtemp, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { VirtualClock } from "@fairlead/base/testing";
import { ClusterState, type DirtyServices, decodeService, type OwnershipChange, type PlanStep } from "@fairlead/core";
import { createEndpointFilter, Memory, type MemoryScope, OwnershipDelay } from "@fairlead/endpoint-filter";
import { service } from "@fairlead/testkit";
import { beforeEach, describe, expect, test } from "vitest";
import { createMetrics } from "../src/metrics/metrics.ts";
import { loadMemory, MemoryKeeper, ownershipFollower, replaceFile } from "../src/ownership.ts";
import { recordedLog } from "./support/fake-node.ts";

describe("ownership", () => {
  const SCOPE: MemoryScope = {
    excludeCIDRs: ["10.244.0.0/16"],
    mixedServices: "own-endpoints",
    ownershipAnnotation: true,
  };
  let dir = "";

  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), "fairlead-memory-"));
  });

  function keeper(path: string, memory = new Memory()) {
    const clock = new VirtualClock();
    const log = recordedLog();
    return { clock, log, keeper: new MemoryKeeper(memory, { path, scope: SCOPE, clock, log }) };
  }

  const FOREIGN = { service: "default/ovn", family: "IPv4", ownership: "foreign" } as const;

  describe("the ownership memory", () => {
    test("outlives the agent", async () => {
      const path = join(dir, "not", "there", "yet", "ownership.json");
      const first = keeper(path);
      first.keeper.apply([FOREIGN, { service: "default/web", family: "IPv6", ownership: "ours" }]);
      first.keeper.apply([{ service: "default/web", family: "IPv6" }]);
      await first.clock.advance(500);
      await first.keeper.flush();

      const log = recordedLog();
      const memory = await loadMemory(path, SCOPE, log);
      expect([...memory.entries()]).toEqual([["default/ovn", { IPv4: "foreign" }]]);
      expect(log.lines).toEqual([]);
      expect(await readdir(join(dir, "not", "there", "yet"))).toEqual(["ownership.json"]);
    });

    test("many changes are one write, no change is none", async () => {
      const { clock, keeper: one } = keeper(join(dir, "ownership.json"));
      for (let i = 0; i < 100; i++) one.apply([{ service: `default/s${i}`, family: "IPv4", ownership: "ours" }]);
      expect(clock.pending.length).toBe(1);
      await clock.advance(500);
      await one.flush();
      one.apply([{ service: "default/s0", family: "IPv4", ownership: "ours" }]);
      expect(clock.pending.length).toBe(0);
    });

    test("what took long to write is not written again soon", async () => {
      const timers = new VirtualClock();
      let now = 0;
      // Each look at the clock is 100 ms later than the one before.
      const clock = { now: () => now, monotonic: () => (now += 100), after: timers.after.bind(timers) };
      const one = new MemoryKeeper(new Memory(), {
        path: join(dir, "ownership.json"),
        scope: SCOPE,
        clock,
        log: recordedLog(),
      });
      one.apply([FOREIGN]);
      expect(timers.pending).toEqual([500]);
      await timers.advance(500);
      await one.flush();
      one.apply([{ ...FOREIGN, ownership: "ours" }]);
      expect(timers.pending[0]).toBeGreaterThan(5_000);
      await one.flush();
      expect(await readFile(join(dir, "ownership.json"), "utf8")).toContain("ours");
    });

    test("what is not written yet is written at the end", async () => {
      const { keeper: one } = keeper(join(dir, "ownership.json"));
      one.apply([FOREIGN]);
      await one.flush();
      expect(await readFile(join(dir, "ownership.json"), "utf8")).toContain("default/ovn");
    });

    test("what stands where the new text is written first is neither followed nor waited for", async () => {
      const path = join(dir, "ownership.json");
      await writeFile(join(dir, "target"), "as it was");
      await symlink(join(dir, "target"), `${path}.${process.pid}.tmp`);
      await replaceFile(path, "new");
      expect(await readFile(path, "utf8")).toBe("new");
      expect(await readFile(join(dir, "target"), "utf8")).toBe("as it was");
    });

    test("a folder that cannot be written is reported once, whatever changes", async () => {
      await writeFile(join(dir, "file"), "");
      const { log, keeper: one } = keeper(join(dir, "file", "ownership.json"));
      one.apply([FOREIGN]);
      await one.flush();
      one.apply([{ ...FOREIGN, ownership: "ours" }]);
      await one.flush();
      expect(log.messages()).toEqual([
        "Failed to save the ownership memory; a restart decides anew for services without endpoints",
      ]);
    });

    test.each(["", "{", "[]", '{"version":1,"scope":"x","services":{}}'])("damaged or strange: %s", async (text) => {
      await writeFile(join(dir, "ownership.json"), text);
      const log = recordedLog();
      expect([...(await loadMemory(join(dir, "ownership.json"), SCOPE, log)).services()]).toEqual([]);
      expect(log.messages("warn")).toEqual(["Cannot use the ownership memory; starting with an empty one"]);
    });

    test("missing: one line", async () => {
      const log = recordedLog();
      expect([...(await loadMemory(join(dir, "ownership.json"), SCOPE, log)).services()]).toEqual([]);
      expect(log.lines).toHaveLength(1);
    });
  });
});

describe("ownership follower", () => {
  const SCOPE = { excludeCIDRs: [], mixedServices: "own-endpoints", ownershipAnnotation: true } as const;

  const NOTHING: PlanStep = {
    changes: new Map(),
    memory: [],
    ownershipChanges: [],
    released: [],
    problems: [],
    notices: [],
  };
  const CLEAN: DirtyServices = { services: new Set(), triggerTimes: new Map() };

  function following() {
    const clock = new VirtualClock();
    const log = recordedLog();
    const metrics = createMetrics(new ClusterState());
    const delay = new OwnershipDelay(10_000, clock);
    const keeper = new MemoryKeeper(new Memory(), { path: "/dev/null/none/ownership.json", scope: SCOPE, clock, log });
    return { clock, metrics, delay, follower: ownershipFollower(keeper, delay, log, metrics.agent) };
  }

  test("a service that is gone waits for no owner, and is due at no sync", async () => {
    const { clock, delay, follower } = following();
    const filter = createEndpointFilter({ ...SCOPE, excludeCIDRs: ["10.16.0.0/16"], excludedFrontends: "all" });
    const { object: web } = decodeService(service("web", { clusterIPs: ["10.96.0.1"], ports: [{ port: 80 }] }));
    if (web === undefined) throw new Error("it was just made");
    delay.around(filter).decide(web, "IPv4", [{ address: "10.16.0.5" }], "ours");
    const gone = { service: "default/web", family: "IPv4" } as const;
    await follower.planned?.({ ...NOTHING, memory: [{ ...gone, ownership: "ours" }] }, CLEAN);
    clock.advanceNow(10_000);
    expect(delay.due()).toEqual(["default/web"]);
    await follower.planned?.({ ...NOTHING, memory: [gone] }, CLEAN);
    expect(delay.due()).toEqual([]);
  });

  test("changes of ownership are counted by what decided", async () => {
    const { metrics, follower } = following();
    const change = (name: string, decidedBy: NonNullable<OwnershipChange["decidedBy"]>): OwnershipChange => {
      return { service: `default/${name}`, family: "IPv4", from: "ours", to: "foreign", why: "so", decidedBy };
    };
    const step: PlanStep = {
      ...NOTHING,
      ownershipChanges: [
        change("moved", "endpoints"),
        change("touched", "endpoints"),
        change("annotated", "annotation"),
        change("ruled", "rule"),
      ],
    };
    const dirty: DirtyServices = { services: new Set(["default/moved", "default/annotated"]), triggerTimes: new Map() };
    await follower.planned?.(step, dirty);
    const { text } = await metrics.text();
    expect(text.split("\n").filter((line) => line.startsWith("fairlead_ownership_changes_total{"))).toEqual(
      ["endpoints", "cidrs", "annotation", "rule"].map(
        (reason) => `fairlead_ownership_changes_total{from="ours",to="foreign",reason="${reason}"} 1`,
      ),
    );
  });
});
