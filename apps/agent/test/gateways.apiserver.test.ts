import { GATEWAY_GROUP, itemsOf, objectAt, type RawObject, valueAt } from "@fairlead/base";
import type { ObjectRequest } from "@fairlead/watch";
import { afterAll, beforeAll, expect, test } from "vitest";

import { PLURALS } from "../src/controller/gateways/writes.ts";
import { realApiServer, startController } from "./support/controller.ts";
import { conditionsOf, gateway, listener, type Made, route, slice } from "./support/gateways.ts";

const NAMESPACE = `fairlead-gateways-${process.pid}`;
/** Of the user who may write there, and nowhere else. */
const TENANT = `${NAMESPACE}-tenant`;
const CLASS = NAMESPACE;
const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const KINDS = { ...PLURALS, ReferenceGrant: "referencegrants" };
const placesIn = (namespace: string) => ({
  ofGateways: `/apis/${GATEWAY_GROUP}/v1/namespaces/${namespace}`,
  services: `/api/v1/namespaces/${namespace}/services`,
  slices: `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`,
});
const { ofGateways: OF_GATEWAYS, services: SERVICES, slices: SLICES } = placesIn(NAMESPACE);
const AT_TENANT = placesIn(TENANT);

let api: Awaited<ReturnType<typeof realApiServer>>;
/** Definitions that were not there before. */
const created: string[] = [];

const ask = (method: ObjectRequest["method"], path: string, object?: unknown) => api.ask(method, path, object);
const create = async (
  path: string,
  kind: string,
  apiVersion: string,
  { metadata, ...raw }: RawObject,
  by = ask,
  status = 201,
) => {
  const { name, labels, annotations } = metadata as Readonly<Record<string, unknown>>;
  const object = { apiVersion, kind, metadata: { name, labels, annotations }, ...raw };
  expect(await by("POST", path, object)).toMatchObject({ status });
};
const ofGateways = (kind: keyof typeof KINDS, { raw }: Made, by = ask, at = OF_GATEWAYS, status = 201) =>
  create(`${at}/${KINDS[kind]}`, kind, `${GATEWAY_GROUP}/v1`, raw, by, status);

beforeAll(async () => {
  api = await realApiServer();
  for (const [kind, plural] of Object.entries(KINDS)) {
    const { status } = await ask("POST", CRDS, definition(kind, plural));
    if (status === 201) created.push(`${plural}.${GATEWAY_GROUP}`);
  }
  for (const name of [NAMESPACE, TENANT]) await create("/api/v1/namespaces", "Namespace", "v1", { metadata: { name } });
});
afterAll(async () => {
  await ask("DELETE", `/apis/${GATEWAY_GROUP}/v1/gatewayclasses/${CLASS}`);
  for (const name of created) await ask("DELETE", `${CRDS}/${name}`);
  for (const name of ["web", `gw-${CLASS}`]) await ask("DELETE", `${SERVICES}/${name}`);
  for (const name of [NAMESPACE, TENANT]) await ask("DELETE", `/api/v1/namespaces/${name}`);
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
  await ofGateways("Gateway", made);
  const backends = [
    { name: "web", port: 80 },
    { name: "gone", port: 80 },
  ];
  await ofGateways("TCPRoute", route("r", { backends }));
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
  // Of the route that went: its slice, the refused shares of both families, what the listener counts, and its name.
  await expect.poll(writes).toEqual(["endpointslices delete 3", "gateways update 1", "services update 1"]);
  await second.end();
});

/** Routes that a user may write as well as anyone. */
const CROWD = 1_000;

test("a user with rights in one namespace moves nothing of another one's: routes without grants and in a crowd, weights, names, slices that claim to be a Gateway's", async () => {
  const controller = await start();
  await ofGateways("TCPRoute", route("kept"));
  const attached = async () =>
    itemsOf(valueAt(await read(`${OF_GATEWAYS}/gateways/gw`), "status", "listeners")).map((one) =>
      valueAt(one, "attachedRoutes"),
    );
  const statusesAt = async (path: string) =>
    itemsOf(valueAt(await read(path), "items")).flatMap((one) => itemsOf(valueAt(one, "status", "parents")));
  await expect.poll(addresses).toEqual(["10.0.0.1", "10.0.0.2"]);
  await expect.poll(attached).toEqual([1, 0]);
  await expect.poll(async () => (await statusesAt(`${OF_GATEWAYS}/tcproutes`)).length).toBe(1);
  const kept = async () => {
    const lists = [`${OF_GATEWAYS}/gateways`, `${OF_GATEWAYS}/tcproutes`, SERVICES, SLICES].map(read);
    return (await Promise.all(lists)).flatMap((list) => itemsOf(valueAt(list, "items")));
  };
  const before = await kept();

  const by = await tenant();
  const own = (name: string) => gateway(name, [listener("tcp", 9000)], { gatewayClassName: CLASS });
  const claiming = (name: string, service: string) => {
    const { raw } = slice(service, ["10.6.6.6"], name, {
      labels: { "endpointslice.kubernetes.io/managed-by": "gateways.fairlead.dev" },
    });
    const metadata = { ...objectAt(raw, "metadata"), annotations: { "fairlead.dev/weight": "99999999999" } };
    return { ...raw, metadata };
  };
  const claim = (at: string, raw: RawObject, status = 201) =>
    create(at, "EndpointSlice", "discovery.k8s.io/v1", raw, by, status);
  await ofGateways("TCPRoute", route("r"), by, OF_GATEWAYS, 403);
  await claim(SLICES, claiming("claim", `gw-${CLASS}`), 403);
  for (const name of ["own", "a".repeat(253)]) await ofGateways("Gateway", own(name), by, AT_TENANT.ofGateways);
  await claim(AT_TENANT.slices, claiming("claim", `gw-${CLASS}`));
  await claim(AT_TENANT.slices, claiming("claim-own", `own-${CLASS}`));
  const theirs = { name: "web", namespace: NAMESPACE, port: 80 };
  const backends = [1e12, -7].map((weight) => ({ ...theirs, weight }));
  await ofGateways("TCPRoute", route("stolen", { parents: [{ name: "own" }], backends }), by, AT_TENANT.ofGateways);
  const parents = [{ name: "gw", namespace: NAMESPACE }];
  const crowd = Array.from({ length: CROWD }, (_, at) => route(`crowd-${at}`, { parents, backends }));
  while (crowd.length > 0)
    await Promise.all(crowd.splice(0, 20).map((one) => ofGateways("TCPRoute", one, by, AT_TENANT.ofGateways)));

  const conditions = async () =>
    (await statusesAt(`${AT_TENANT.ofGateways}/tcproutes`)).map((one) => Object.values(conditionsOf(one)).join());
  const refused = "False NotAllowedByListeners,False RefNotPermitted";
  await expect.poll(async () => (await conditions()).length).toBe(CROWD + 1);
  expect(new Set(await conditions())).toEqual(new Set([refused, "True Accepted,False RefNotPermitted"]));
  const namesAt = async (path: string) =>
    itemsOf(valueAt(await read(path), "items")).map((one) => String(valueAt(one, "metadata", "name")));
  await expect.poll(() => namesAt(AT_TENANT.services)).toHaveLength(2);
  // The one of a Service that no Gateway has is the user's own.
  await expect.poll(() => namesAt(AT_TENANT.slices)).toEqual(["claim"]);
  expect(await kept()).toEqual(before);
  const slices = itemsOf(valueAt(await read(SLICES), "items"));
  const source = slices.find((one) => valueAt(one, "metadata", "name") === "web-1");
  const endpoints = [{ addresses: ["10.0.0.9"], conditions: { ready: true } }];
  await ask("PUT", `${SLICES}/web-1`, { ...Object(source), endpoints });
  await expect.poll(addresses).toEqual(["10.0.0.9"]);
  await controller.end();
});

/** A service account with rights to what Gateways are made of, in its namespace only. */
async function tenant() {
  const rbac = { apiGroup: "rbac.authorization.k8s.io", version: "rbac.authorization.k8s.io/v1" };
  const at = `/apis/${rbac.version}/namespaces/${TENANT}`;
  const metadata = { name: "tenant" };
  const accounts = `/api/v1/namespaces/${TENANT}/serviceaccounts`;
  await create(accounts, "ServiceAccount", "v1", { metadata });
  await create(`${at}/roles`, "Role", rbac.version, {
    metadata,
    rules: [
      { apiGroups: [GATEWAY_GROUP], resources: ["gateways", "tcproutes", "referencegrants"], verbs: ["*"] },
      { apiGroups: [""], resources: ["services"], verbs: ["*"] },
      { apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs: ["*"] },
    ],
  });
  await create(`${at}/rolebindings`, "RoleBinding", rbac.version, {
    metadata,
    roleRef: { apiGroup: rbac.apiGroup, kind: "Role", name: "tenant" },
    subjects: [{ kind: "ServiceAccount", name: "tenant", namespace: TENANT }],
  });
  const asked = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} };
  const { body } = await ask("POST", `${accounts}/tenant/token`, asked);
  const token = String(valueAt(body, "status", "token"));
  return (await api.as("tenant", token)).ask;
}

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
