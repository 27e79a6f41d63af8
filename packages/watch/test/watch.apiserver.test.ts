import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { objectAt, type RawObject, textAt, valueAt } from "@fairlead/base";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createApiSource, type Subscription } from "../src/index.ts";
import { setDefaults } from "../src/manifests/read.ts";
import { type ResourceSpec, resourceSpecs } from "../src/resources.ts";
import { call, create, serverSpecs, specService as service } from "./support/server-specs.ts";
import { trimmed } from "./support/stored-objects.ts";

/**
 * Against a real kube-apiserver: FAIRLEAD_TEST_APISERVER=https://127.0.0.1:6443 and a token that may do everything in
 * the file FAIRLEAD_TEST_TOKEN_FILE. Its certificate is not checked. Everything happens in a namespace of the test's
 * own. The test ground runs it; elsewhere it is left out (vitest.config.ts).
 */
const { FAIRLEAD_TEST_APISERVER: url = "", FAIRLEAD_TEST_TOKEN_FILE: tokenFile = "" } = process.env;
const token = tokenFile === "" ? "" : readFileSync(tokenFile, "utf8");
const server = { url, token };

describe.each([false, true])("a real kube-apiserver, protobuf: %s", (protobuf) => {
  const namespace = `fairlead-watch-${process.pid}-${protobuf}`;
  const services = `/api/v1/namespaces/${namespace}/services`;
  const slices = `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`;

  beforeAll(() =>
    create(server, "/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } }),
  );
  afterAll(async () => {
    for (const path of [services, slices]) {
      const { body } = await call(server, "GET", path);
      const items = valueAt(body, "items");
      for (const item of Array.isArray(items) ? items : []) {
        await call(server, "DELETE", `${path}/${String(textAt(objectAt(item, "metadata"), "name"))}`);
      }
    }
    await call(server, "DELETE", `/api/v1/namespaces/${namespace}`);
  });

  serverSpecs(() => server, namespace, protobuf);

  // Of addresses and ports the first are not given to the services of others, which are created meanwhile.
  test.each([
    ["short", service("d-short", { clusterIP: "10.96.0.201" })],
    ["affinity", service("d-affinity", { clusterIP: "10.96.0.202", sessionAffinity: "ClientIP" })],
    ["external IPs", service("d-external", { clusterIP: "10.96.0.203", externalIPs: ["192.0.2.9"] })],
    [
      "UDP by name",
      service("d-udp", {
        clusterIP: "10.96.0.204",
        ports: [{ name: "dns", port: 53, protocol: "UDP", targetPort: "dns" }],
      }),
    ],
    [
      "NodePort",
      service("d-nodeport", { clusterIP: "10.96.0.205", type: "NodePort", ports: [{ port: 80, nodePort: 30_077 }] }),
    ],
    [
      "LoadBalancer, Local",
      service("d-lb", {
        clusterIP: "10.96.0.206",
        type: "LoadBalancer",
        externalTrafficPolicy: "Local",
        healthCheckNodePort: 30_078,
        ports: [{ port: 80, nodePort: 30_079 }],
      }),
    ],
    ["ExternalName", service("d-name", { type: "ExternalName", externalName: "example.test" })],
    ["headless", service("d-headless", { clusterIP: "None" })],
  ])("defaults of a Service: %s", async (_what, raw) => {
    const stored = await create(server, services, raw);
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
    const stored = await create(server, slices, raw);
    const ours: RawObject = structuredClone(raw);
    setDefaults("EndpointSlice", ours);
    for (const field of ["endpoints", "ports", "addressType"])
      expect(ours[field]).toEqual(conditionsAside(stored[field]));
  });
});

/** All objects of a resource as `decode` is given them, by key. */
async function given(spec: ResourceSpec, options: { readonly protobuf: boolean; readonly watchList: boolean }) {
  const objects = new Map<string, unknown>();
  const stop = new AbortController();
  const subscription: Subscription<unknown> = {
    decode: (raw) => (options.protobuf ? raw : trimmed(raw, spec.protobuf ?? [])),
    onChange: (change) => {
      if (change.type === "upsert") objects.set(change.key, change.object);
      else if (change.type === "synced") stop.abort();
    },
  };
  const headers = { authorization: `Bearer ${token}` };
  const source = createApiSource({
    connection: { server: url, credentials: async () => ({ headers, tls: { rejectUnauthorized: false } }) },
    nodeName: "node-a",
    userAgent: "fairlead-proxy/test",
    ...options,
  });
  await source.run({ [spec.name]: subscription }, stop.signal);
  return objects;
}

describe("what is there comes the same", () => {
  test.each(
    resourceSpecs({ nodeName: "node-a" }).flatMap((spec) =>
      [true, false].map((watchList) => ({ ...spec, spec, watchList })),
    ),
  )("$name, WatchList: $watchList", async ({ spec, watchList }) => {
    const before = await given(spec, { protobuf: false, watchList });
    const protobuf = await given(spec, { protobuf: true, watchList });
    const after = await given(spec, { protobuf: false, watchList });
    // Elsewhere on the server objects come and go: what stood there all the time has to be equal.
    const steady = [...before].filter(([key, object]) => isDeepStrictEqual(after.get(key), object));
    expect(new Map(steady.map(([key]) => [key, protobuf.get(key)]))).toEqual(new Map(steady));
  });
});

/** The server writes an empty `conditions`, which means the same as none. */
function conditionsAside(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (key, inner) => (key === "conditions" ? undefined : inner)));
}
