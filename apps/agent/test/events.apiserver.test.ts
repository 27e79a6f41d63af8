import { itemsOf, objectAt, systemClock, textAt, valueAt } from "@fairlead/base";
import { NodeEvents } from "@fairlead/intake";
import type { ObjectRequest } from "@fairlead/watch";
import { afterAll, beforeAll, expect, test } from "vitest";
import { SERVICE_NETWORK } from "../src/controller/networks/decode.ts";
import { healthCheckNotListening } from "../src/events.ts";
import { openSource } from "../src/start/source.ts";
import { realApiServer, startController } from "./support/controller.ts";
import { configOf, recordedLog } from "./support/fake-node.ts";

const NAMESPACE = `fairlead-events-${process.pid}`;
const IN = `/api/v1/namespaces/${NAMESPACE}`;
const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const NETWORKS = `/apis/k8s.cni.cncf.io/v1/namespaces/${NAMESPACE}/network-attachment-definitions`;
const CRD_NAME = "network-attachment-definitions.k8s.cni.cncf.io";

let api: Awaited<ReturnType<typeof realApiServer>>;

const ask = (method: ObjectRequest["method"], path: string, object?: unknown) => api.ask(method, path, object);
const create = async (path: string, object: unknown) => {
  const { status, body } = await ask("POST", path, object);
  expect({ status, body }).toMatchObject({ status: 201 });
  return textAt(objectAt(body, "metadata"), "uid") ?? "";
};
const service = (name: string, more: object = {}) => ({
  apiVersion: "v1",
  kind: "Service",
  metadata: { name, ...more },
  spec: { selector: { app: name }, ports: [{ port: 80 }] },
});

/** As `kubectl describe service` looks for them. The API server's own, of repaired addresses, are not meant. */
async function reasonsOf(uid: string): Promise<readonly unknown[]> {
  const { body } = await ask("GET", `${IN}/events?fieldSelector=involvedObject.uid%3D${uid}`);
  return itemsOf(valueAt(body, "items"))
    .filter((event) => !String(valueAt(event, "reportingComponent")).endsWith("-repair-controller"))
    .map((event) => valueAt(event, "reason"));
}

beforeAll(async () => {
  api = await realApiServer();
  await create("/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name: NAMESPACE } });
});
afterAll(async () => {
  for (const one of ["web", "lost"]) await ask("DELETE", `${IN}/services/${one}`);
  await ask("DELETE", `${CRDS}/${CRD_NAME}`);
  await ask("DELETE", `/api/v1/namespaces/${NAMESPACE}`);
  await api[Symbol.asyncDispose]();
});

test("the agent's Event on a Service has its uid", async () => {
  const uid = await create(`${IN}/services`, service("web"));
  const log = recordedLog();
  const { events: port } = await openSource(configOf([`--kubeconfig=${api.kubeconfig}`]), "node-a", log);
  if (port === undefined) throw new Error("wanted an API server to send Events to");
  const events = new NodeEvents({ node: "node-a", ...port, clock: systemClock, log });
  const check = {
    service: `${NAMESPACE}/web`,
    namespace: NAMESPACE,
    name: "web",
    port: 30_001,
    localEndpoints: 1,
  } as const;
  await events.report(healthCheckNotListening(check, { host: "192.0.2.1", port: 30_001 }, new Error("in use")));
  expect(await reasonsOf(uid)).toEqual(["FailedToStartServiceHealthcheck"]);
});

test("fairlead-controller: a network without its NetworkAttachmentDefinition is an Event with the Service's uid, until it is there", async () => {
  await create(CRDS, DEFINITION);
  await expect.poll(async () => (await ask("GET", NETWORKS)).status).toBe(200);
  const labels = { "service.kubernetes.io/service-proxy-name": "storage" };
  const uid = await create(
    `${IN}/services`,
    service("lost", { labels, annotations: { [SERVICE_NETWORK]: "storage" } }),
  );
  const { log, end } = await startController("", `--kubeconfig=${api.kubeconfig}`, "--leader-elect=false");
  try {
    await expect.poll(() => reasonsOf(uid)).toEqual(["NetworkNotFound"]);
    await create(NETWORKS, {
      apiVersion: "k8s.cni.cncf.io/v1",
      kind: "NetworkAttachmentDefinition",
      metadata: { name: "storage" },
      spec: { config: JSON.stringify({ cniVersion: "1.0.0", name: "storage", type: "macvlan" }) },
    });
    await expect.poll(() => log.messages("info")).toContain("Service on a secondary network has no problem any longer");
  } finally {
    await end();
  }
  expect(await reasonsOf(uid)).toEqual(["NetworkNotFound"]);
});

/** As Multus installs it (k8snetworkplumbingwg/multus-cni, deployments), of its schema what is read. */
const DEFINITION = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: CRD_NAME },
  spec: {
    group: "k8s.cni.cncf.io",
    scope: "Namespaced",
    names: {
      plural: "network-attachment-definitions",
      singular: "network-attachment-definition",
      kind: "NetworkAttachmentDefinition",
      shortNames: ["net-attach-def"],
    },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: "object",
            properties: { spec: { type: "object", properties: { config: { type: "string" } } } },
          },
        },
      },
    ],
  },
};
