import { expect, test } from "vitest";
import { ClusterState, type ServiceKey } from "../src/index.ts";
import { endpoint, service, slice } from "./objects.ts";

function taken(state: ClusterState): readonly ServiceKey[] {
  return [...state.takeDirty().services].sort();
}

test("a change makes its service dirty, until it is taken", () => {
  const state = new ClusterState();
  expect(state.dirty).toBe(false);
  expect(state.upsertService(service("web"))).toBe(true);
  expect(state.upsertSlice(slice("api", [endpoint("10.144.0.1")]))).toBe(true);
  expect(state.dirty).toBe(true);
  expect(taken(state)).toEqual(["default/api", "default/web"]);
  expect(state.dirty).toBe(false);
  expect(taken(state)).toEqual([]);
});

test("an object that stays equal is no change, however it is ordered inside", () => {
  const state = new ClusterState();
  const { name, ...rest } = service("web", { affinitySeconds: 10 });
  state.upsertService({ name, ...rest });
  state.upsertSlice(slice("web", [endpoint("10.144.0.1")], { triggerTime: 1 }));
  state.takeDirty();
  expect(state.upsertService({ ...rest, name })).toBe(false);
  expect(state.upsertSlice(slice("web", [endpoint("10.144.0.1")], { triggerTime: 2 }))).toBe(false);
  expect(state.deleteService("default", "other")).toBe(false);
  expect(state.deleteSlice("default", "other")).toBe(false);
  expect(state.dirty).toBe(false);
});

test.each([
  ["an endpoint's condition", [endpoint("10.144.0.1", { ready: false })]],
  ["an endpoint's node", [endpoint("10.144.0.1", { nodeName: "node-c" })]],
  ["a hint", [endpoint("10.144.0.1", { zoneHints: ["z1"] })]],
  ["one endpoint less", []],
])("%s is a change", (_, endpoints) => {
  const state = new ClusterState();
  state.upsertSlice(slice("web", [endpoint("10.144.0.1")]));
  state.takeDirty();
  expect(state.upsertSlice(slice("web", endpoints))).toBe(true);
  expect(taken(state)).toEqual(["default/web"]);
});

test("what is deleted is gone, and makes its service dirty", () => {
  const state = new ClusterState();
  state.upsertService(service("web"));
  state.upsertSlice(slice("web", []));
  state.takeDirty();
  expect(state.deleteService("default", "web")).toBe(true);
  expect(state.service("default/web")).toBeUndefined();
  expect(state.slices("default/web")).toHaveLength(1);
  expect(taken(state)).toEqual(["default/web"]);
  expect(state.deleteSlice("default", "web-1")).toBe(true);
  expect(taken(state)).toEqual(["default/web"]);
  expect([...state.keys()]).toEqual([]);
});

test("a slice that names another service moves", () => {
  const state = new ClusterState();
  state.upsertSlice(slice("old", [], { name: "moving" }));
  state.takeDirty();
  state.upsertSlice(slice("new", [], { name: "moving" }));
  expect(taken(state)).toEqual(["default/new", "default/old"]);
  expect(state.slices("default/old")).toEqual([]);
  expect(state.slices("default/new")).toHaveLength(1);
  state.deleteSlice("default", "moving");
  expect(taken(state)).toEqual(["default/new"]);
});

test("slices of one name in two namespaces are two", () => {
  const state = new ClusterState();
  state.upsertSlice(slice("web", [], { name: "same" }));
  state.upsertSlice(slice("web", [], { name: "same", namespace: "other" }));
  state.deleteSlice("default", "same");
  expect(state.slices("default/web")).toEqual([]);
  expect(state.slices("other/web")).toHaveLength(1);
});

test("trigger times are given once, with the change, and those from before the start never", () => {
  const state = new ClusterState({ ignoreTriggersBefore: 100 });
  const web = (address: string, triggerTime: number) => slice("web", [endpoint(address)], { triggerTime });
  state.upsertSlice(web("10.144.0.1", 100));
  expect(state.takeDirty().triggerTimes.size).toBe(0);
  state.upsertSlice(web("10.144.0.2", 101));
  state.upsertSlice(web("10.144.0.3", 105));
  expect([...state.takeDirty().triggerTimes]).toEqual([["default/web", [101, 105]]]);
  expect(state.takeDirty().triggerTimes.size).toBe(0);
  state.upsertSlice(web("10.144.0.4", 110));
  state.deleteSlice("default", "web-1");
  expect(state.takeDirty().triggerTimes.size).toBe(0);
});

test("counts changes as they come and those that wait", () => {
  const state = new ClusterState();
  state.upsertService(service("web"));
  state.upsertService(service("web"));
  state.upsertSlice(slice("web", []));
  state.upsertSlice(slice("web", []));
  state.upsertSlice(slice("web", [endpoint("10.144.0.1")]));
  expect(state.serviceChanges).toEqual({ total: 2, pending: 1 });
  expect(state.endpointChanges).toEqual({ total: 3, pending: 2 });
  state.takeDirty();
  expect(state.serviceChanges).toEqual({ total: 2, pending: 0 });
  expect(state.endpointChanges).toEqual({ total: 3, pending: 0 });
});

test("a change of a dual-stack Service is one change", () => {
  const state = new ClusterState();
  state.upsertService(service("web", { clusterIPs: ["10.96.0.10", "fd00::10"] }));
  expect(state.serviceChanges).toEqual({ total: 1, pending: 1 });
});
