import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { decodeEndpointSlice } from "../src/decode/endpoint-slice.ts";
import { createIntern } from "../src/decode/fields.ts";
import { decodeService } from "../src/decode/service.ts";
import { ClusterState, Planner } from "../src/index.ts";
import { Memory, OPTIONS, replan } from "./objects.ts";

const SERVICES = 10_000;
const ENDPOINTS = 10;

setFlagsFromString("--expose-gc");
const collectGarbage: unknown = runInNewContext("gc");

/** What stays after a collection: however busy the machine is, and in a process without other tests. */
function heapUsed(): number {
  if (typeof collectGarbage === "function") collectGarbage();
  return process.memoryUsage().heapUsed;
}

test("10,000 services × 10 endpoints and their plan take less than 40 MB", () => {
  const text = clusterJSON(SERVICES, ENDPOINTS);
  const before = heapUsed();
  const state = new ClusterState();
  const planner = new Planner(OPTIONS);
  const memory = new Memory();
  decodeInto(state, JSON.parse(text.services), JSON.parse(text.slices));
  replan(planner, state, memory);
  expect(heapUsed() - before).toBeLessThan(40e6);
  expect(planner.plan("IPv4").endpointCount).toBe(SERVICES * ENDPOINTS);
  expect(text.services.length).toBeGreaterThan(0);
});

/** The yardstick's objects as JSON text, one list of each kind, as an API server would send them. */
function clusterJSON(services: number, endpoints: number): { services: string; slices: string } {
  const index = Array.from({ length: services }, (_, i) => i);
  return {
    services: JSON.stringify(index.map((i) => rawService(i))),
    slices: JSON.stringify(index.map((i) => rawSlice(i, endpoints))),
  };
}

function rawService(i: number): unknown {
  return {
    metadata: { name: `service-${i}`, namespace: `team-${i % 100}`, resourceVersion: `${i}`, uid: `uid-${i}` },
    spec: {
      type: "ClusterIP",
      clusterIP: serviceIP(i),
      clusterIPs: [serviceIP(i)],
      ipFamilies: ["IPv4"],
      ports: [{ name: "http", protocol: "TCP", port: 80, targetPort: 8080 }],
      internalTrafficPolicy: "Cluster",
      sessionAffinity: "None",
    },
    status: { loadBalancer: {} },
  };
}

function rawSlice(i: number, endpoints: number): unknown {
  return {
    metadata: {
      name: `service-${i}-abcde`,
      namespace: `team-${i % 100}`,
      labels: { "kubernetes.io/service-name": `service-${i}` },
      resourceVersion: `${i}`,
    },
    addressType: "IPv4",
    ports: [{ name: "http", protocol: "TCP", port: 8080 }],
    endpoints: Array.from({ length: endpoints }, (_, e) => ({
      addresses: [podIP(i * endpoints + e)],
      conditions: { ready: true, serving: true, terminating: false },
      nodeName: `node-with-a-longer-name-${(i + e) % 500}`,
      zone: "zone-a",
      targetRef: { kind: "Pod", name: `service-${i}-${e}`, namespace: `team-${i % 100}` },
    })),
  };
}

function serviceIP(i: number): string {
  return `10.${96 + (i >> 16)}.${(i >> 8) & 255}.${i & 255}`;
}

function podIP(n: number): string {
  return `10.${144 + (n >> 16)}.${(n >> 8) & 255}.${n & 255}`;
}

function decodeInto(state: ClusterState, services: readonly unknown[], slices: readonly unknown[]): void {
  const intern = createIntern();
  for (const raw of services) {
    const { object } = decodeService(raw, intern);
    if (object !== undefined) state.upsertService(object);
  }
  for (const raw of slices) {
    const { object } = decodeEndpointSlice(raw, intern);
    if (object !== undefined) state.upsertSlice(object);
  }
}
