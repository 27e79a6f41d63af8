import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { SliceState } from "../../src/slices/slice-state.ts";
import { Cluster, type PodFields, pod, service } from "./objects.ts";

const MOST = 3;

const anyPod: fc.Arbitrary<PodFields> = fc
  .record({
    id: fc.integer({ min: 1, max: 12 }),
    ready: fc.boolean(),
    terminating: fc.boolean(),
    attached: fc.boolean(),
    port: fc.constantFrom(8080, 9090),
  })
  .map(({ id, attached, ...rest }) => ({
    name: `p${id}`,
    ...rest,
    ...(attached && { ips: [`192.168.50.${id}`, `fd00:50::${id}`] }),
  }));

const gone = fc.integer({ min: 1, max: 12 }).map((id) => ({ gone: `p${id}` }));
const history = fc.array(fc.array(fc.oneof(anyPod, gone), { maxLength: 6 }), { minLength: 1, maxLength: 8 });

function settle(state: SliceState, cluster: Cluster): void {
  // What it wrote comes back as events, which make it dirty once more.
  for (let round = 0; round < 3; round += 1) cluster.settle(state, MOST);
}

test("whatever happened, slices hold each endpoint once, none too many, and then nothing is written", () => {
  fc.assert(
    fc.property(history, (rounds) => {
      const [state, cluster] = [new SliceState(), new Cluster()];
      const pods = new Map<string, PodFields>();
      state.setService("lab/web", service({ spec: { ipFamilies: ["IPv4", "IPv6"] } }));
      for (const round of rounds) {
        for (const event of round) {
          if ("gone" in event) {
            pods.delete(event.gone);
            state.setPod(`lab/${event.gone}`, undefined);
          } else {
            pods.set(event.name, event);
            state.setPod(`lab/${event.name}`, pod(event));
          }
        }
        settle(state, cluster);
        const fresh = freshly([...pods.values()]);
        expect(cluster.endpoints()).toEqual(fresh.endpoints());
        for (const { endpoints } of cluster.slices.values()) {
          expect(endpoints.length).toBeGreaterThan(0);
          expect(endpoints.length).toBeLessThanOrEqual(MOST);
        }
        const { writes } = cluster;
        settle(state, cluster);
        expect(cluster.writes).toBe(writes);
      }
    }),
    { numRuns: runs(100) },
  );
});

function freshly(pods: readonly PodFields[]): Cluster {
  const [state, cluster] = [new SliceState(), new Cluster()];
  state.setService("lab/web", service({ spec: { ipFamilies: ["IPv4", "IPv6"] } }));
  for (const fields of pods) state.setPod(`lab/${fields.name}`, pod(fields));
  settle(state, cluster);
  return cluster;
}

test("no object stops the others: anything is read, reported or left out", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.constantFrom("pod", "service", "slice"), fc.jsonValue())),
      fc.string(),
      (all, text) => {
        const [state, cluster] = [new SliceState(), new Cluster()];
        state.setService("lab/web", service());
        state.setPod("lab/a", pod({ name: "a", ips: ["192.168.50.10"] }));
        state.setPod("lab/b", pod({ name: "b", status: text }));
        for (const [kind, raw] of all) {
          if (kind === "pod") state.setPod("lab/any", raw);
          else if (kind === "service") state.setService("lab/any", raw);
          else state.setSlice("lab/any", raw);
        }
        settle(state, cluster);
        expect(cluster.endpoints()).toEqual(["192.168.50.10:8080 ready serving"]);
      },
    ),
    { numRuns: runs(100) },
  );
});
