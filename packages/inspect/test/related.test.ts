import { endpointSlice, type RawObject, service } from "@fairlead/testkit";
import { createManifestsSnapshot, type ObjectSource } from "@fairlead/watch";
import { describe, expect, test } from "vitest";
import { parseTarget, readCluster, relatedServices } from "../src/index.ts";

const POD = { address: "10.144.1.5" };
const slice = (name: string) =>
  endpointSlice(`${name}-1`, { service: name, family: "IPv4", ports: [{ port: 80 }], endpoints: [POD] });

/** a and b have an external address in common, b and c a node port; no service has anything in common with d. */
const objects = [
  service("a", { clusterIPs: ["10.96.0.1"], externalIPs: ["192.0.2.9"], ports: [{ port: 80 }] }),
  service("b", {
    type: "NodePort",
    clusterIPs: ["10.96.0.2"],
    externalIPs: ["192.0.2.9"],
    ports: [{ port: 80, nodePort: 30_080 }],
  }),
  service("c", { type: "NodePort", clusterIPs: ["10.96.0.3"], ports: [{ port: 81, nodePort: 30_080 }] }),
  service("d", { clusterIPs: ["10.96.0.4"], ports: [{ port: 80 }] }),
  ...["a", "b", "c", "d"].map(slice),
];

const manifests = (all: readonly RawObject[]) =>
  createManifestsSnapshot({
    paths: ["-"],
    nodeName: "node-a",
    readStandardInput: async () => Buffer.from(JSON.stringify(all)),
  });

const never = new AbortController().signal;

describe("relatedServices", () => {
  test.each([
    ["default/a", ["a", "b", "c"]],
    ["default/d", ["d"]],
    ["10.96.0.4:80", ["d"]],
    ["192.0.2.9:80", ["a", "b", "c"]],
    // Any address may be one of the node's.
    ["10.201.0.10:30080", ["a", "b", "c"]],
    ["default/absent", ["absent"]],
  ])("%s: those that decide about it", async (target, expected) => {
    const { state } = await readCluster(manifests(objects), never);
    expect([...relatedServices(state, parseTarget(target))].sort()).toEqual(expected.map((name) => `default/${name}`));
  });
});

describe("readCluster for few services", () => {
  const wanted = new Set(["default/b", "default/d"] as const);
  const served = async (source: ObjectSource) => {
    const { state } = await readCluster(source, never, { slicesOf: () => wanted });
    return [...state.keys()].sort().map((key) => [key, state.slices(key).length]);
  };
  const expected = [
    ["default/a", 0],
    ["default/b", 1],
    ["default/c", 0],
    ["default/d", 1],
  ];

  test("has all services and only their slices, in whatever order the objects come", async () => {
    expect(await served(manifests(objects))).toEqual(expected);
    expect(await served(manifests(objects.toReversed()))).toEqual(expected);
  });

  test("problems of other slices are ignored", async () => {
    const bad = { ...slice("c"), addressType: "IPv5" };
    const all = [...objects.filter(({ metadata }) => JSON.stringify(metadata).includes("c-1") === false), bad];
    const { problems } = await readCluster(manifests(all), never, { slicesOf: () => wanted });
    expect(problems).toEqual([]);
    expect((await readCluster(manifests(all), never)).problems).not.toEqual([]);
  });
});
