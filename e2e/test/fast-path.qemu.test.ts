import { IP_FAMILIES } from "@fairlead/base";
import { missingForCounting } from "@fairlead/lab/qemu/boot";
import { KERNELS, type KernelVersion } from "@fairlead/lab/qemu/kernel";
import { runs } from "@fairlead/tooling/runs";
import { beforeAll, describe, expect, test } from "vitest";
import { type Configuration, LINKS } from "../src/qemu/fast-path.ts";
import { disturbedOn, followDevices, type Round, STEPS } from "../src/qemu/fast-path-disturbed.ts";
import { CASES, type CaseName, packetsOn, type SeenPackets } from "../src/qemu/fast-path-packets.ts";

/** The built agent with the fast path on Debian's kernels, which have flowtables. Takes long: `pnpm e2e --all`. */
const missing = await missingForCounting(["iptables-legacy", "nfacct"]);
const { CI = "" } = process.env;

/** The keys are what it was written with. */
const VERSIONS = Object.keys(KERNELS) as KernelVersion[];

/** A thousand in `pnpm e2e --all`. */
const CHANGES = runs(50);

/** Those whose DROP every packet meets. */
const UNANSWERED: readonly CaseName[] = [
  "UDP, a DROP comes later and conntrack forgets the flows",
  "UDP to a Service with the annotation, a DROP comes later",
];
const ANSWERED = (Object.keys(CASES) as CaseName[]).filter((name) => !UNANSWERED.includes(name));

/** Packets of a flow that meet rules until it is in the flowtable, and when it ends. */
const FEW = 10;

if (missing === undefined) {
  describe.each(VERSIONS)("on Linux %s", (version) => {
    describe("packets", () => {
      let seen: SeenPackets | undefined;
      const of = (family: (typeof IP_FAMILIES)[number], name: CaseName) => {
        const found = seen?.cases[family][name];
        if (found === undefined) throw new Error(`the guest printed nothing of "${name}" and ${family}`);
        return found;
      };

      beforeAll(async () => {
        seen = await packetsOn(version);
      });

      test.each(IP_FAMILIES)("%s: auto chooses devices of pods and the uplink, and none of Docker's", (family) => {
        const chosen = Object.values(LINKS).map(({ device }) => device);
        expect(seen?.devices[family]).toEqual(chosen.toSorted());
      });

      describe.each(IP_FAMILIES)("%s", (family) => {
        test.each(ANSWERED)("%s: all answered", (name) => {
          const { answers, flows, lost, stalled } = of(family, name);
          expect({ lost, stalled }).toEqual({ lost: 0, stalled: 0 });
          expect(flows).toBe(CASES[name].flows);
          expect(answers).toBeGreaterThan(flows);
        });

        test.each([
          "TCP connections at the same time",
          "UDP flows at the same time",
          "one UDP flow",
          "TCP from outside to a node port",
          "UDP from outside to a node port",
          "TCP of a pod to itself",
          "UDP of a pod to itself",
        ] as const)("%s: in the flowtable, and few of its packets meet rules", (name) => {
          const { flows, offloaded, met } = of(family, name);
          expect(offloaded).toBe(flows);
          expect(met).toBeLessThanOrEqual(FEW * flows);
        });

        test("connection tracking counts what the flowtable forwards", () => {
          const { answers, counted } = of(family, "one UDP flow");
          expect(counted).toBe(answers);
        });

        test("fragments take the usual way", () => {
          const { answers, met } = of(family, "datagrams in fragments");
          expect(met).toBeGreaterThanOrEqual(2 * answers);
        });

        test.each([
          "SCTP",
          "TCP to a Service with the annotation",
          "UDP to a Service with the annotation",
          "TCP that another program translates",
        ] as const)("%s: not in the flowtable, all packets meet rules", (name) => {
          const { answers, offloaded, met } = of(family, name);
          expect(offloaded).toBe(0);
          expect(met).toBeGreaterThanOrEqual(2 * answers);
        });

        test.each(UNANSWERED)("%s: it has effect", (name) => {
          const { flows, stalled } = of(family, name);
          expect(stalled).toBeGreaterThanOrEqual(flows);
        });
      });
    });

    test("the flowtable follows devices that come, go, are renamed and return", async () => {
      const printed = await followDevices(version);
      expect(printed.trim().split("\n")).toEqual(Object.keys(STEPS));
    });

    describe(`${CHANGES} endpoint changes with syncs, devices, restarts and take-overs between them`, () => {
      let rounds: Readonly<Record<Configuration, Round>> | undefined;

      beforeAll(async () => {
        rounds = await disturbedOn(version, CHANGES);
      });

      test("flows are in the flowtable with the fast path only", () => {
        expect(rounds?.slow.offloaded).toBe(0);
        expect(rounds?.fast.offloaded).toBeGreaterThan(0);
      });

      test("the kernel has seen each change by itself", () => {
        for (const configuration of ["slow", "fast"] as const)
          expect(rounds?.[configuration].syncs).toBeGreaterThanOrEqual(CHANGES);
      });

      test("no connection is reset or stalls for longer than 0.3 s that does not without the fast path", () => {
        const lived = (configuration: Configuration) => Object.entries(rounds?.[configuration].lived ?? {});
        const faults = (configuration: Configuration) =>
          lived(configuration)
            .filter(([, { lost, stalled }]) => lost > 0 || stalled > 0)
            .map(([name, { lost, stalled }]) => ({ name, lost, stalled }));
        expect(lived("fast").length).toBeGreaterThan(0);
        expect(lived("fast").map(([name]) => name)).toEqual(lived("slow").map(([name]) => name));
        expect(lived("fast").filter(([, { answers }]) => !(answers > 0))).toEqual([]);
        expect({ slow: faults("slow"), fast: faults("fast") }).toEqual({ slow: [], fast: [] });
      });

      test("UDP flows go to another endpoint when theirs is removed", () => {
        const moved = (configuration: Configuration) =>
          IP_FAMILIES.map((family) => rounds?.[configuration].lived[`udp-moving-${family}`]?.moved ?? 0);
        for (const count of [...moved("slow"), ...moved("fast")]) expect(count).toBeGreaterThan(0);
      });
    });
  });
} else {
  test("the fast path in QEMU", ({ skip }) => {
    if (CI !== "") throw new Error(`CI must run these: ${missing}`);
    skip(missing);
  });
}
