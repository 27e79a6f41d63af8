import { fail, type LightApiServer } from "@fairlead/testkit/api-server";
import { describe, expect, test } from "vitest";
import type { ObjectChange, OtherState, OtherSubscription } from "../src/index.ts";
import {
  CIDRS_PATH,
  Consumer,
  endAfterEach,
  fakeApi,
  following,
  type Kept,
  NODES_PATH,
  run,
  SERVICES_PATH,
  SLICES_PATH,
  service,
} from "./support/fake-api.ts";

endAfterEach();

test("objects that exist, then synced, then changes as they happen", async () => {
  const { api, consumer } = await following(({ store }) => {
    store.put(SERVICES_PATH, service("a"));
    store.put(SERVICES_PATH, service("b"));
  });
  expect(consumer.changes.map((change) => change.type)).toEqual(["upsert", "upsert", "synced"]);
  api.store.put(SERVICES_PATH, service("a", { port: 81 }));
  api.store.delete(SERVICES_PATH, "default/b");
  api.store.put(SERVICES_PATH, service("c"));
  await consumer.until(() => consumer.state.has("default/c"));
  expect(consumer.keys()).toEqual(["default/a", "default/c"]);
  expect(consumer.state.get("default/a")?.spec).toMatchObject({ port: 81 });
  expect(api.requests).toHaveLength(1);
});

test("WatchList, selected on the server, JSON, the user agent", async () => {
  const { api } = await following();
  const [request] = api.requests;
  expect(Object.fromEntries(request?.query ?? [])).toEqual({
    watch: "true",
    sendInitialEvents: "true",
    resourceVersionMatch: "NotOlderThan",
    resourceVersion: "",
    allowWatchBookmarks: "true",
    timeoutSeconds: "300",
    labelSelector: "!service.kubernetes.io/service-proxy-name",
    fieldSelector: "spec.clusterIP!=None",
  });
  expect(request?.headers).toMatchObject({ accept: "application/json", "user-agent": "fairlead-proxy/0.0.0" });
});

test("a proxy with a name is given the services with its label, and all slices", async () => {
  const label = (value: string) => ({ "service.kubernetes.io/service-proxy-name": value });
  const { api, consumer } = await following(
    ({ store }) => {
      store.put(SERVICES_PATH, service("first"));
      store.put(SERVICES_PATH, service("mine", {}, label("edge")));
      store.put(SERVICES_PATH, service("other", {}, label("other")));
    },
    { serviceProxyName: "edge" },
  );
  expect(consumer.keys()).toEqual(["default/mine"]);
  expect(api.requests[0]?.query.get("labelSelector")).toBe("service.kubernetes.io/service-proxy-name=edge");
  api.store.put(SERVICES_PATH, service("first", {}, label("edge")));
  api.store.put(SERVICES_PATH, service("mine", {}, label("other")));
  await consumer.until(() => !consumer.state.has("default/mine"));
  expect(consumer.keys()).toEqual(["default/first"]);
});

test("EndpointSlices of one controller only", async () => {
  const { api, server } = await fakeApi();
  const slice = (name: string, labels: Record<string, string>) => ({
    metadata: { namespace: "default", name, labels },
  });
  const managed = (by: string) => ({ "endpointslice.kubernetes.io/managed-by": by });
  api.store.put(SLICES_PATH, slice("own", managed("slices.example.org")));
  api.store.put(SLICES_PATH, slice("other", managed("endpointslice-controller.k8s.io")));
  api.store.put(SLICES_PATH, slice("by-hand", {}));
  const consumer = new Consumer();
  run(server, { endpointSlices: consumer.subscription }, { slicesManagedBy: "slices.example.org" });
  await consumer.until(() => consumer.synced > 0);
  expect(consumer.keys()).toEqual(["default/own"]);
});

test("each resource has its own path and selection; only the own node is asked for", async () => {
  const { api, server } = await fakeApi();
  api.store.put(NODES_PATH, { metadata: { name: "node-a" } });
  api.store.put(NODES_PATH, { metadata: { name: "node-b" } });
  api.store.put(SLICES_PATH, { metadata: { name: "s", namespace: "default" } });
  api.store.put(SLICES_PATH, {
    metadata: { name: "h", namespace: "default", labels: { "service.kubernetes.io/headless": "" } },
  });
  api.store.put(CIDRS_PATH, { metadata: { name: "kubernetes" } });
  const [endpointSlices, node, serviceCIDRs] = [new Consumer(), new Consumer(), new Consumer()];
  run(server, {
    endpointSlices: endpointSlices.subscription,
    node: node.subscription,
    serviceCIDRs: serviceCIDRs.subscription,
  });
  await Promise.all([endpointSlices, node, serviceCIDRs].map((one) => one.until(() => one.synced > 0)));
  expect(endpointSlices.keys()).toEqual(["default/s"]);
  expect(node.keys()).toEqual(["/node-a"]);
  expect(serviceCIDRs.keys()).toEqual(["/kubernetes"]);
});

test("a server without ServiceCIDRs has an empty list of them", async () => {
  const { api, server } = await fakeApi();
  api.intercept(
    ({ path }, response) => path === CIDRS_PATH && response.writeHead(404).end("404 page not found") !== null,
  );
  const consumer = new Consumer();
  const { reports } = run(server, { serviceCIDRs: consumer.subscription });
  await consumer.until(() => consumer.synced > 0);
  expect(consumer.changes).toEqual([{ type: "synced" }]);
  expect(reports).toEqual([]);
});

test("what decode refuses is not given, or deleted if it was given before; a throw is reported", async () => {
  const { api, consumer, reports } = await following(({ store }) => {
    store.put(SERVICES_PATH, service("bad", { type: "bad" }));
    store.put(SERVICES_PATH, service("a"));
    store.put(SERVICES_PATH, service("b"));
  });
  expect(consumer.keys()).toEqual(["default/a", "default/b"]);
  api.store.put(SERVICES_PATH, service("a", { type: "bad" }));
  api.store.put(SERVICES_PATH, service("b", { throws: true }));
  await consumer.until(() => consumer.state.size === 0);
  expect(reports).toContainEqual({ type: "badObject", resource: "services", key: "default/b", error: "undecodable" });
});

test("nothing more is read while the consumer is busy", async () => {
  const { api, consumer } = await following();
  let release = () => {};
  consumer.hold = new Promise((resolve) => {
    release = resolve;
  });
  api.store.put(SERVICES_PATH, service("a"));
  api.store.put(SERVICES_PATH, service("b"));
  await consumer.until(() => consumer.state.has("default/a"));
  await new Promise((resolve) => setImmediate(resolve));
  expect(consumer.keys()).toEqual(["default/a"]);
  consumer.hold = undefined;
  release();
  await consumer.until(() => consumer.state.has("default/b"));
});

test("a consumer that throws ends the source with its error", async () => {
  const { server } = await fakeApi();
  const failure = new Error("no more");
  const onChange = () => {
    throw failure;
  };
  const { ended } = run(server, { services: { decode: () => undefined, onChange } });
  await expect(ended).rejects.toBe(failure);
});

test("stops at once when asked, also before it has begun", async () => {
  const { stop, ended, api } = await following();
  await stop();
  await expect(ended).resolves.toBeUndefined();
  expect(api.requests).toHaveLength(1);
});

describe("api others", () => {
  endAfterEach();

  const PATH = "/apis/kubeovn.io/v1/subnets";
  const DISCOVERY = "/apis/kubeovn.io/v1";
  const RESOURCE = { group: "kubeovn.io", version: "v1", plural: "subnets", kind: "Subnet", namespaced: false };
  const subnet = (name: string) => ({ metadata: { name }, spec: { cidrBlock: "10.16.0.0/16" } });

  /** A server, and a consumer of its Subnets that keeps the states it gets. */
  async function following(prepare: (api: LightApiServer) => void, only?: { namespace: string; name: string }) {
    const { api, server } = await fakeApi();
    prepare(api);
    const consumer = new Consumer();
    const states: OtherState[] = [];
    const waiting: { state: OtherState; found: () => void }[] = [];
    const onState = (state: OtherState) => {
      states.push(state);
      for (const one of waiting.splice(0)) one.state === state ? one.found() : waiting.push(one);
    };
    const state = (wanted: OtherState) =>
      states.includes(wanted)
        ? Promise.resolve()
        : new Promise<void>((found) => waiting.push({ state: wanted, found }));
    const { decode, onChange } = consumer.subscription;
    const other: OtherSubscription = {
      resource: { ...RESOURCE, ...(only && { only }) },
      decode,
      // What comes is what was decoded.
      onChange: (change) => onChange(change as ObjectChange<Kept>),
      onState,
    };
    const { reports } = run(server, { others: [other] });
    return { api, consumer, states, state, reports };
  }

  /** Answers for the resource, and for what the server has of its group, as long as `is` says so. */
  function answering(api: LightApiServer, is: () => boolean, code: number, resources?: readonly string[]): void {
    const interceptor: Parameters<LightApiServer["intercept"]>[0] = (request, response) => {
      const asked = request.path === PATH || request.path === DISCOVERY;
      if (!is() || !asked) return false;
      if (request.path === PATH) fail(response, code, "Status", "no");
      else if (resources === undefined) fail(response, 404, "NotFound", "no such group");
      else response.writeHead(200).end(JSON.stringify({ resources: resources.map((name) => ({ name })) }));
      // Each is used once.
      api.intercept(interceptor);
      return true;
    };
    api.intercept(interceptor);
  }

  describe("what is not there", () => {
    test.each([
      ["404", 404, undefined],
      ["403, and the group is not there", 403, undefined],
      ["403, and the group has other resources", 403, ["vpcs"]],
    ])("%s: absent and empty, until it is installed", async (_what, code, resources) => {
      let installed = false;
      const { api, consumer, states, state, reports } = await following((fake) =>
        answering(fake, () => !installed, code, resources),
      );
      await state("absent");
      await consumer.until(() => consumer.synced > 0);
      expect(consumer.changes).toEqual([{ type: "synced" }]);
      expect(reports).toEqual([]);
      api.store.put(PATH, subnet("ovn-default"));
      installed = true;
      await consumer.until(() => consumer.state.has("/ovn-default"));
      await state("listed");
      expect(states.includes("forbidden") || states.includes("unreachable")).toBe(false);
    });

    test("a CRD deleted under the watch: its objects are deleted one by one, then it is absent", async () => {
      let deleted = false;
      const { api, consumer, state } = await following((fake) => {
        fake.store.put(PATH, subnet("a"));
        fake.store.put(PATH, subnet("b"));
        answering(fake, () => deleted, 404);
      });
      await state("listed");
      api.store.delete(PATH, "/a");
      await consumer.until(() => !consumer.state.has("/a"));
      deleted = true;
      api.endWatches();
      await state("absent");
      await consumer.until(() => consumer.state.size === 0);
    });

    test("429 while a CRD is being established is waited out", async () => {
      let established = false;
      const { api, state, states, reports } = await following((fake) => {
        fake.store.put(PATH, subnet("a"));
        answering(fake, () => !established, 429);
      });
      await state("unreachable");
      established = true;
      await state("listed");
      expect(states).not.toContain("absent");
      expect(reports.map(({ type }) => type)).not.toContain("failing");
      expect(api.requests.every((request) => request.path !== DISCOVERY)).toBe(true);
    });
  });

  describe("what may not be read", () => {
    test("forbidden: what was given stays, the server is not called unreachable, and it is followed again", async () => {
      let revoked = true;
      const { api, consumer, states, state, reports } = await following((fake) => {
        fake.store.put(PATH, subnet("a"));
        answering(fake, () => revoked, 403, ["subnets"]);
      });
      await state("forbidden");
      expect(consumer.changes).toEqual([]);
      revoked = false;
      await state("listed");
      expect(consumer.keys()).toEqual(["/a"]);
      states.length = 0;
      revoked = true;
      api.endWatches();
      await state("forbidden");
      expect(consumer.keys()).toEqual(["/a"]);
      states.length = 0;
      revoked = false;
      await state("listed");
      expect(reports.map(({ type }) => type)).not.toContain("failing");
    });
  });

  test("of a resource of which only one object is wanted, only that is asked for", async () => {
    const { api, state } = await following(() => {}, { namespace: "kube-flannel", name: "kube-flannel-cfg" });
    await state("listed");
    const [request] = api.requests;
    expect(request?.path).toBe("/apis/kubeovn.io/v1/namespaces/kube-flannel/subnets");
    expect(request?.query.get("fieldSelector")).toBe("metadata.name=kube-flannel-cfg");
  });
});
