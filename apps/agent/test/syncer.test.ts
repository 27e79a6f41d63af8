import {
  ClusterState,
  decodeEndpointSlice,
  decodeService,
  Planner,
  type PlannerOptions,
  type ServiceKey,
} from "@fairlead/core";
import { endpointSlice, service } from "@fairlead/testkit";
import { expect, test } from "vitest";
import { Syncer } from "../src/sync/syncer.ts";
import { recordedLog } from "./support/recorded-log.ts";

const OPTIONS: PlannerOptions = {
  nodeName: "node-a",
  families: ["IPv4"],
  nodeIPs: {},
  detectors: {},
  nodePortAddresses: {},
  masqueradeAll: false,
  semantics: { localSourcesShortCut: true, localWithoutEndpoints: "drop", withoutEndpoints: "reject" },
};

/** A syncer whose memory, and with it planning, can be made to throw; it has no kernel. */
function syncing() {
  const state = new ClusterState();
  const failing = { now: false };
  const seen: ReadonlySet<ServiceKey>[] = [];
  const times: (readonly number[] | undefined)[] = [];
  const memory = () => {
    if (failing.now) throw new Error("planning threw");
    return { get: () => undefined };
  };
  const syncer = new Syncer({
    planner: new Planner(OPTIONS),
    state,
    memory,
    families: [],
    familiesAtOnce: true,
    options: () => OPTIONS,
    slicing: { clock: { monotonic: () => 0 }, budget: 10, turn: async () => {} },
    followers: [
      {
        planned(_step, { services, triggerTimes }) {
          seen.push(services);
          times.push(triggerTimes.get("default/web"));
        },
      },
    ],
    log: recordedLog(),
  });
  const move = (name: string, address: string) => {
    const fields = { service: name, family: "IPv4", ports: [{ port: 80 }], endpoints: [{ address }] } as const;
    const { metadata, ...slice } = endpointSlice(`${name}-1`, fields);
    const annotations = { "endpoints.kubernetes.io/last-change-trigger-time": "2030-01-01T00:00:00Z" };
    const { object } = decodeEndpointSlice({ ...slice, metadata: { ...metadata, annotations } });
    if (object !== undefined) state.upsertSlice(object);
  };
  for (const name of ["web", "api"]) {
    const { object } = decodeService(service(name, { clusterIPs: ["10.96.0.10"], ports: [{ port: 80 }] }));
    if (object !== undefined) state.upsertService(object);
  }
  return { syncer, failing, seen, times, move };
}

test("what changed before a planning that failed is told with the next one that does not", async () => {
  const { syncer, failing, seen, times, move } = syncing();
  await syncer.sync("partial");
  move("web", "10.144.0.5");
  failing.now = true;
  await syncer.sync("partial");
  move("web", "10.144.0.6");
  await syncer.sync("partial");
  move("api", "10.144.0.7");
  failing.now = false;
  await syncer.sync("partial");
  await syncer.sync("partial");
  expect(seen.slice(1)).toEqual([new Set(["default/web", "default/api"]), new Set()]);
  expect(times[1]).toHaveLength(2);
});
