import { GATEWAY_GROUP, itemsOf, objectAt, type RawObject, valueAt } from "@fairlead/base";
import type { ObjectRequest } from "@fairlead/watch";
import { afterAll, beforeAll, expect, test } from "vitest";

import { PLURALS } from "../src/controller/gateways/writes.ts";
import { realApiServer, startController } from "./support/controller.ts";
import { conditionsOf, gateway, listener, route, slice } from "./support/gateways.ts";

const NAMESPACE = `fairlead-gateways-${process.pid}`;
const CLASS = NAMESPACE;
const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const KINDS = { ...PLURALS, ReferenceGrant: "referencegrants" };
const OF_GATEWAYS = `/apis/${GATEWAY_GROUP}/v1/namespaces/${NAMESPACE}`;
const SERVICES = `/api/v1/namespaces/${NAMESPACE}/services`;
const SLICES = `/apis/discovery.k8s.io/v1/namespaces/${NAMESPACE}/endpointslices`;

let api: Awaited<ReturnType<typeof realApiServer>>;
/** Definitions that were not there before. */
const created: string[] = [];

const ask = (method: ObjectRequest["method"], path: string, object?: unknown) => api.ask(method, path, object);
const create = async (path: string, kind: string, apiVersion: string, { metadata, ...raw }: RawObject) => {
  const { name, labels } = metadata as { name: string; labels?: object };
  const object = { apiVersion, kind, metadata: { name, ...(labels && { labels }) }, ...raw };
  expect(await ask("POST", path, object)).toMatchObject({ status: 201 });
};

beforeAll(async () => {
  api = await realApiServer();
  for (const [kind, plural] of Object.entries(KINDS)) {
    const { status } = await ask("POST", CRDS, definition(kind, plural));
    if (status === 201) created.push(`${plural}.${GATEWAY_GROUP}`);
  }
  await create("/api/v1/namespaces", "Namespace", "v1", { metadata: { name: NAMESPACE } });
});
afterAll(async () => {
  await ask("DELETE", `/apis/${GATEWAY_GROUP}/v1/gatewayclasses/${CLASS}`);
  for (const name of created) await ask("DELETE", `${CRDS}/${name}`);
  for (const name of ["web", `gw-${CLASS}`]) await ask("DELETE", `${SERVICES}/${name}`);
  await ask("DELETE", `/api/v1/namespaces/${NAMESPACE}`);
  await api[Symbol.asyncDispose]();
});

const start = () => startController("", `--kubeconfig=${api.kubeconfig}`, "--jobs=gateways", "--leader-elect=false");
const read = async (path: string) => (await ask("GET", path)).body;
const programmed = async () => conditionsOf(valueAt(await read(`${OF_GATEWAYS}/gateways/gw`), "status"))["Programmed"];
const giveAddress = async () => {
  const service = objectAt({ raw: await read(`${SERVICES}/gw-${CLASS}`) }, "raw");
  const status = { loadBalancer: { ingress: [{ ip: "192.0.2.1" }] } };
  return (await ask("PUT", `${SERVICES}/gw-${CLASS}/status`, { ...service, status })).status;
};
const addresses = async () =>
  itemsOf(valueAt(await read(SLICES), "items"))
    .filter((one) => JSON.stringify(one).includes("gateways.fairlead.dev"))
    .flatMap((one) => itemsOf(valueAt(one, "endpoints")).map((endpoint) => itemsOf(valueAt(endpoint, "addresses"))[0]));

test("a Gateway becomes a Service with slices and an address, by status subresources and admission; a second process writes nothing", async () => {
  for (const plural of Object.values(KINDS)) {
    await expect.poll(async () => (await ask("GET", `/apis/${GATEWAY_GROUP}/v1/${plural}`)).status).toBe(200);
  }
  const spec = { controllerName: "fairlead.dev/gateway" };
  await create(`/apis/${GATEWAY_GROUP}/v1/gatewayclasses`, "GatewayClass", `${GATEWAY_GROUP}/v1`, {
    metadata: { name: CLASS },
    spec,
  });
  const made = gateway("gw", [listener("tcp", 9000), listener("dns", 53, "UDP")], { gatewayClassName: CLASS });
  await create(`${OF_GATEWAYS}/gateways`, "Gateway", `${GATEWAY_GROUP}/v1`, made.raw);
  const backends = [
    { name: "web", port: 80 },
    { name: "gone", port: 80 },
  ];
  await create(`${OF_GATEWAYS}/tcproutes`, "TCPRoute", `${GATEWAY_GROUP}/v1`, route("r", { backends }).raw);
  await create(SERVICES, "Service", "v1", { metadata: { name: "web" }, spec: { ports: [{ name: "tcp", port: 80 }] } });
  await create(SLICES, "EndpointSlice", "discovery.k8s.io/v1", slice("web", ["10.0.0.1", "10.0.0.2!"]).raw);
  const first = await start();
  await expect.poll(programmed).toBe("False AddressNotAssigned");
  await expect.poll(addresses).toEqual(["10.0.0.1", "10.0.0.2"]);
  // As a load balancer does: again after a conflict.
  await expect.poll(giveAddress).toBe(200);
  await expect.poll(programmed).toBe("True Programmed");
  await first.end();
  const second = await start();
  await expect.poll(() => second.log.messages("info")).toContain("fairlead-controller started");
  const parents = itemsOf(valueAt(await read(`${OF_GATEWAYS}/tcproutes/r`), "status", "parents"));
  expect(parents.map(conditionsOf)).toEqual([{ Accepted: "True Accepted", ResolvedRefs: "False BackendNotFound" }]);
  const metrics = async () => (await fetch(`http://127.0.0.1:${second.port}/metrics`)).text();
  const writes = async () =>
    [...(await metrics()).matchAll(/^fairlead_controller_writes_total.*resource="(\w+)",verb="(\w+)".* (\d+)$/gm)]
      .map(([, resource, verb, count]) => `${resource} ${verb} ${count}`)
      .sort();
  await expect.poll(metrics).toContain("fairlead_controller_leader 1");
  await ask("DELETE", `${OF_GATEWAYS}/tcproutes/r`);
  await expect.poll(addresses).toEqual([]);
  // Of the route that went: its slice, the refused shares of both families, and what the listener counts.
  await expect.poll(writes).toEqual(["endpointslices delete 3", "gateways update 1"]);
  await second.end();
});

/** As the Gateway API installs it, of its schema what this test needs: none. */
function definition(kind: string, plural: string) {
  const open = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: {
      name: `${plural}.${GATEWAY_GROUP}`,
      annotations: { "api-approved.kubernetes.io": "unapproved, as far as a test needs it" },
    },
    spec: {
      group: GATEWAY_GROUP,
      scope: kind === "GatewayClass" ? "Cluster" : "Namespaced",
      names: { plural, singular: kind.toLowerCase(), kind },
      versions: [
        {
          name: "v1",
          served: true,
          storage: true,
          ...(kind !== "ReferenceGrant" && { subresources: { status: {} } }),
          schema: { openAPIV3Schema: { type: "object", properties: { spec: open, status: open } } },
        },
      ],
    },
  };
}
