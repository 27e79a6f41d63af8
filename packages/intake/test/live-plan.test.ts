import { decodeEndpointSlice, type EndpointSlice, type ServiceKey } from "@fairlead/core";
import { Memory } from "@fairlead/endpoint-filter";
import { endpointSlice, type RawObject, service, userDefinedNetwork as udn } from "@fairlead/testkit";
import type { ObjectChange, ObjectKey, ObjectSource, Subscription, Subscriptions } from "@fairlead/watch";
import { expect, test } from "vitest";
import { keepingMirrors, LivePlan, type LivePlanParts, MirroredSlices } from "../src/index.ts";
import { configOf, filterOf } from "./support.ts";

const SEMANTICS = { localSourcesShortCut: true, localWithoutEndpoints: "drop", withoutEndpoints: "reject" } as const;
const MODE = { semantics: SEMANTICS, needs: { iptables: [], nodeAddresses: false, kernelParts: [], sysctls: [] } };

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
  const config = configOf("--cluster-cidr=10.144.0.0/16");
  const source = new PutSource();
  const planned: ("all" | readonly ServiceKey[])[] = [];
  let next = Promise.withResolvers<void>();
  const plan = new LivePlan({
    config,
    filter: filterOf(config),
    memory: new Memory(),
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

const SERVICE = "nad-l3/sample-deployment";

/** A source that gives single objects, as both sources do. */
function followed() {
  const mirrors = new MirroredSlices();
  const given: ObjectChange<EndpointSlice>[] = [];
  const changed: string[] = [];
  const to = {
    decode: (raw: unknown) => decodeEndpointSlice(raw).object,
    onChange: (change: ObjectChange<EndpointSlice>) => void given.push(change),
  };
  const { decode, onChange } = keepingMirrors(to, mirrors, (service) => changed.push(service));
  const put = (name: string, raw: unknown) => {
    const object = decode(raw);
    if (object !== undefined) void onChange({ type: "upsert", key: `nad-l3/${name}`, object });
  };
  const remove = (name: string) => void onChange({ type: "delete", key: `nad-l3/${name}` });
  const addresses = () => mirrors.of(SERVICE).flatMap(({ slice }) => slice.endpoints.map(({ address }) => address));
  return { mirrors, given, changed, put, remove, addresses };
}

/** A copy with other metadata, or another body. */
const changed = (more: object) => ({ ...udn.mirrored, ...more });
const withLabels = (labels: object) => changed({ metadata: { namespace: "nad-l3", name: "m", labels } });
const MANAGED = { "endpointslice.kubernetes.io/managed-by": "endpointslice-mirror-controller.k8s.ovn.org" };
const NAMED = { ...MANAGED, "k8s.ovn.org/service-name": "sample-deployment" };

test("mirrored slices are kept apart, with their network; those of Kubernetes' own controller are given on", () => {
  const one = followed();
  one.put("s", udn.slice);
  one.put("m", udn.mirrored);
  expect(one.given).toMatchObject([{ type: "upsert", object: { endpoints: [{ address: "10.244.1.17" }] } }]);
  expect(one.mirrors.of(SERVICE)).toMatchObject([
    { network: "l3-network", source: "sample-deployment-rkk4n", slice: { endpoints: [{ address: "10.128.1.3" }] } },
  ]);
  expect(one.mirrors.of("nad-l3/other")).toEqual([]);
});

test("they are followed: another address, several, and one that goes", () => {
  const one = followed();
  one.put("m", udn.mirrored);
  one.put("m", changed({ endpoints: [{ addresses: ["10.128.1.4"] }] }));
  one.put("l", withLabels(NAMED));
  expect(one.addresses()).toEqual(["10.128.1.4", "10.128.1.3"]);
  one.remove("m");
  expect(one.addresses()).toEqual(["10.128.1.3"]);
  one.remove("l");
  expect(one.addresses()).toEqual([]);
  expect(new Set(one.changed)).toEqual(new Set([SERVICE]));
  expect(one.given).toEqual([]);
  one.remove("s");
  expect(one.given).toEqual([{ type: "delete", key: "nad-l3/s" }]);
});

test("the first releases of OVN-Kubernetes name network and source in labels", () => {
  const one = followed();
  const labels = { "k8s.ovn.org/endpointslice-network": "blue", "k8s.ovn.org/source-endpointslice": "web-1" };
  one.put("m", withLabels({ ...NAMED, ...labels }));
  expect(one.mirrors.of(SERVICE)).toMatchObject([{ network: "blue", source: "web-1" }]);
});

test.each([
  ["another controller's", withLabels({ ...NAMED, "endpointslice.kubernetes.io/managed-by": "someone" })],
  ["one without a Service", withLabels(MANAGED)],
  ["one with a name that no Service has", withLabels({ ...MANAGED, "k8s.ovn.org/service-name": "a b" })],
  ["one of names", changed({ addressType: "FQDN" })],
  ["what is no object", "slice"],
])("%s is neither", (_what, raw) => {
  const one = followed();
  one.put("m", raw);
  expect([one.given, one.addresses()]).toEqual([[], []]);
});
