import { request } from "node:https";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createApiSource, type SourceReport } from "../src/index.ts";
import { setDefaults } from "../src/manifests/defaults.ts";
import { objectAt, type RawObject, textAt, valueAt } from "../src/raw.ts";
import { Consumer } from "./support/consumer.ts";

/**
 * Against a real kube-apiserver: FAIRLEAD_TEST_APISERVER=https://127.0.0.1:6443 and a token that may do everything in
 * FAIRLEAD_TEST_TOKEN. Its certificate is not checked. Everything happens in a namespace of the test's own.
 */
const { FAIRLEAD_TEST_APISERVER: server = "", FAIRLEAD_TEST_TOKEN: token = "" } = process.env;
const tls = { rejectUnauthorized: false };
const headers = { authorization: `Bearer ${token}` };
const namespace = `fairlead-watch-${process.pid}`;

function call(method: string, path: string, body?: unknown): Promise<{ status: number; body: RawObject }> {
  return new Promise((resolve, reject) => {
    const sent = request(`${server}${path}`, {
      method,
      ...tls,
      headers: { ...headers, "content-type": "application/json" },
    });
    sent.once("response", async (response) => {
      let text = "";
      for await (const chunk of response) text += String(chunk);
      resolve({ status: response.statusCode ?? 0, body: JSON.parse(text) });
    });
    sent.once("error", reject);
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

async function create(path: string, object: unknown): Promise<RawObject> {
  const { status, body } = await call("POST", path, object);
  if (status !== 201) throw new Error(`${path}: ${status} ${String(valueAt(body, "message"))}`);
  return body;
}

const services = `/api/v1/namespaces/${namespace}/services`;
const slices = `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`;
const service = (name: string, spec: object = {}, metadata: object = {}) => ({
  apiVersion: "v1",
  kind: "Service",
  metadata: { name, ...metadata },
  spec: { ports: [{ port: 80 }], ...spec },
});

function follow() {
  const [to, ofSlices, cidrs] = [new Consumer(), new Consumer(), new Consumer()];
  const reports: SourceReport[] = [];
  const stop = new AbortController();
  const connection = { server, credentials: async () => ({ headers, tls }) };
  const source = createApiSource({
    connection,
    nodeName: "node-a",
    userAgent: "fairlead-proxy/test",
    onReport: (report) => reports.push(report),
  });
  const subscriptions = {
    services: to.subscription,
    endpointSlices: ofSlices.subscription,
    node: new Consumer().subscription,
    serviceCIDRs: cidrs.subscription,
  };
  const ended = source.run(subscriptions, stop.signal);
  const end = async () => {
    stop.abort();
    await ended;
  };
  return { to, ofSlices, cidrs, reports, end };
}

describe.skipIf(server === "")(
  `a real kube-apiserver${server === "" ? " (FAIRLEAD_TEST_APISERVER is not set)" : ""}`,
  () => {
    beforeAll(() =>
      create("/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } }),
    );
    afterAll(async () => {
      for (const path of [services, slices]) {
        const { body } = await call("GET", path);
        const items = valueAt(body, "items");
        for (const item of Array.isArray(items) ? items : []) {
          await call("DELETE", `${path}/${String(textAt(objectAt(item, "metadata"), "name"))}`);
        }
      }
      await call("DELETE", `/api/v1/namespaces/${namespace}`);
    });

    test("WatchList, changes, and the selection of services", async () => {
      await create(services, service("first"));
      await create(services, service("headless", { clusterIP: "None" }));
      await create(services, service("other", {}, { labels: { "service.kubernetes.io/service-proxy-name": "x" } }));
      const { to, ofSlices, cidrs, reports, end } = follow();
      await to.until(() => to.synced > 0);
      expect(to.keys().filter((key) => key.startsWith(`${namespace}/`))).toEqual([`${namespace}/first`]);
      expect(to.keys()).toContain("default/kubernetes");
      await cidrs.until(() => cidrs.synced > 0);
      expect(cidrs.keys()).toEqual(["/kubernetes"]);
      const slice = { apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", addressType: "IPv4", endpoints: [] };
      await create(slices, { ...slice, metadata: { name: "s" } });
      await ofSlices.until(() => ofSlices.state.has(`${namespace}/s`));
      await call("DELETE", `${services}/first`);
      await create(services, service("second"));
      await to.until(() => to.state.has(`${namespace}/second`));
      expect(to.state.has(`${namespace}/first`)).toBe(false);
      expect(reports.map((report) => report.type)).toEqual(["listed", "listed", "listed", "listed"]);
      await end();
    });

    test.each([
      ["short", service("d-short", { clusterIP: "10.96.77.1" })],
      ["affinity", service("d-affinity", { clusterIP: "10.96.77.2", sessionAffinity: "ClientIP" })],
      ["external IPs", service("d-external", { clusterIP: "10.96.77.3", externalIPs: ["192.0.2.9"] })],
      [
        "UDP by name",
        service("d-udp", {
          clusterIP: "10.96.77.4",
          ports: [{ name: "dns", port: 53, protocol: "UDP", targetPort: "dns" }],
        }),
      ],
      [
        "NodePort",
        service("d-nodeport", { clusterIP: "10.96.77.5", type: "NodePort", ports: [{ port: 80, nodePort: 31777 }] }),
      ],
      [
        "LoadBalancer, Local",
        service("d-lb", {
          clusterIP: "10.96.77.6",
          type: "LoadBalancer",
          externalTrafficPolicy: "Local",
          healthCheckNodePort: 31778,
          ports: [{ port: 80, nodePort: 31779 }],
        }),
      ],
      ["ExternalName", service("d-name", { type: "ExternalName", externalName: "example.test" })],
      ["headless", service("d-headless", { clusterIP: "None" })],
    ])("defaults of a Service: %s", async (_what, raw) => {
      const stored = await create(services, raw);
      const ours: RawObject = structuredClone(raw);
      setDefaults("Service", ours);
      // A headless service gets the cluster's families, which no manifest can know.
      const unknown = textAt(objectAt(raw, "spec"), "clusterIP") === "None" ? ["ipFamilies", "ipFamilyPolicy"] : [];
      const known = Object.entries(objectAt(stored, "spec")).filter(([field]) => !unknown.includes(field));
      expect(objectAt(ours, "spec")).toEqual(Object.fromEntries(known));
    });

    test("defaults of an EndpointSlice", async () => {
      const raw = {
        apiVersion: "discovery.k8s.io/v1",
        kind: "EndpointSlice",
        metadata: { name: "defaults" },
        addressType: "IPv4",
        endpoints: [{ addresses: ["10.144.0.1"] }],
        ports: [{ port: 80 }, { name: "dns", port: 53, protocol: "UDP" }],
      };
      const stored = await create(slices, raw);
      const ours: RawObject = structuredClone(raw);
      setDefaults("EndpointSlice", ours);
      for (const field of ["endpoints", "ports", "addressType"])
        expect(ours[field]).toEqual(conditionsAside(stored[field]));
    });
  },
);

/** The server writes an empty `conditions`, which means the same as none. */
function conditionsAside(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (key, inner) => (key === "conditions" ? undefined : inner)));
}
