import { parseArguments } from "@fairlead/config";
import type { ServiceKey } from "@fairlead/core";
import { Memory } from "@fairlead/endpoint-filter";
import { endpointSlice, type RawObject, service } from "@fairlead/testkit";
import type { ObjectKey, ObjectSource, Subscription, Subscriptions } from "@fairlead/watch";
import { expect, test } from "vitest";
import { filterSettings, LivePlan, type LivePlanParts } from "../src/index.ts";

const SEMANTICS = { localSourcesShortCut: true, localWithoutEndpoints: "drop", withoutEndpoints: "reject" } as const;
const MODE = { semantics: SEMANTICS, needs: { iptables: [], nodeAddresses: false, kernelParts: [], sysctls: [] } };

/** A source that gives what the test puts. */
class PutSource implements ObjectSource {
  #subscriptions: Subscriptions = {};

  async run<S, E, N, C>(subscriptions: Subscriptions<S, E, N, C>, signal: AbortSignal): Promise<void> {
    // Each resource gets back what its own `decode` gave.
    this.#subscriptions = subscriptions as Subscriptions;
    const { promise, resolve } = Promise.withResolvers<void>();
    signal.addEventListener("abort", () => resolve(), { once: true });
    await promise;
  }

  get asked(): string[] {
    return Object.keys(this.#subscriptions).sort();
  }

  put(resource: "services" | "endpointSlices" | "node", raw: RawObject): void {
    const to: Subscription<unknown> | undefined = this.#subscriptions[resource];
    const key: ObjectKey = `${raw.metadata.namespace ?? ""}/${raw.metadata.name}`;
    void to?.onChange({ type: "upsert", key, object: to.decode(raw) });
  }

  synced(...resources: ("services" | "endpointSlices" | "node")[]): void {
    for (const resource of resources) void this.#subscriptions[resource]?.onChange({ type: "synced" });
  }
}

function slice(...addresses: string[]): RawObject {
  const endpoints = addresses.map((address) => ({ address }));
  return endpointSlice("web-1", { service: "web", family: "IPv4", ports: [{ port: 80 }], endpoints });
}

function begin(purpose: LivePlanParts["purpose"], onPlanned: LivePlanParts["onPlanned"] = () => {}) {
  const parsed = parseArguments(["--cluster-cidr=10.144.0.0/16"], { readFile: () => "", version: "0.0.0" });
  if (parsed.kind !== "run") throw new Error("the flag above is good");
  const filter = filterSettings(parsed.config);
  if (!filter.ok) throw new Error(filter.errors.join("\n"));
  const source = new PutSource();
  const planned: ("all" | readonly ServiceKey[])[] = [];
  let next = Promise.withResolvers<void>();
  const plan = new LivePlan({
    config: parsed.config,
    filter: filter.options,
    memory: Memory.empty,
    nodeName: "node-a",
    mode: MODE,
    purpose,
    async onPlanned(services, step) {
      planned.push(services === "all" ? "all" : [...services]);
      await onPlanned(services, step);
      next.resolve();
      next = Promise.withResolvers();
    },
  });
  const stop = new AbortController();
  const followed = plan.follow(source, stop.signal);
  const endpoints = () => Array.from(plan.planner.plan("IPv4").groups.values(), ({ cluster }) => cluster.length);
  return { source, plan, planned, stop, followed, endpoints, step: () => next.promise };
}

test("one plan when all is known, and one for all changes of a turn", async () => {
  const { source, planned, stop, followed, endpoints, step } = begin("owners");
  expect(source.asked).toEqual(["endpointSlices", "services"]);
  const first = step();
  source.put("services", service("web", { clusterIPs: ["10.96.0.10"], ports: [{ port: 80 }] }));
  source.put("endpointSlices", slice("10.144.0.5"));
  source.synced("services", "endpointSlices");
  await first;
  expect(endpoints()).toEqual([1]);
  const second = step();
  source.put("endpointSlices", slice("10.144.0.5", "10.144.0.6"));
  source.put("endpointSlices", slice("10.144.0.5", "10.144.0.6", "10.144.0.7"));
  await second;
  expect(endpoints()).toEqual([3]);
  expect(planned).toEqual(["all", ["default/web"]]);
  stop.abort();
  await followed;
});

test("rules wait for the Node and its addresses", async () => {
  const { source, plan, planned, stop, followed, step } = begin("rules");
  expect(source.asked).toEqual(["endpointSlices", "node", "services"]);
  const first = step();
  source.synced("services", "endpointSlices", "node");
  expect(planned).toEqual([]);
  plan.setAddresses(["127.0.0.1", "192.0.2.1"]);
  await first;
  expect(planned).toEqual(["all"]);
  stop.abort();
  await followed;
});

test("what a listener fails with ends it", async () => {
  const { source, followed } = begin("owners", () => {
    throw new Error("no room for rows");
  });
  source.synced("services", "endpointSlices");
  await expect(followed).rejects.toThrow("no room for rows");
});
