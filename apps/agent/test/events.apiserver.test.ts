import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { itemsOf, objectAt, systemClock, textAt, valueAt } from "@fairlead/base";
import { parseSlicesArguments } from "@fairlead/config";
import { NodeEvents } from "@fairlead/intake";
import { type ApiConnection, loadConnection, type ObjectRequest, requestObject } from "@fairlead/watch";
import { afterAll, beforeAll, expect, test } from "vitest";
import { healthCheckNotListening } from "../src/events.ts";
import { SERVICE_NETWORK } from "../src/slices/decode.ts";
import { runSlices } from "../src/slices/run.ts";
import { openSource } from "../src/start/source.ts";
import { freePort } from "./support/free-port.ts";
import { recordedLog } from "./support/recorded-log.ts";
import { configOf } from "./support/running-agent.ts";

/**
 * Against a real kube-apiserver: FAIRLEAD_TEST_APISERVER=https://127.0.0.1:6443 and a token that may do everything in
 * the file FAIRLEAD_TEST_TOKEN_FILE. The test ground runs it; elsewhere it is left out (vitest.config.ts).
 */
const { FAIRLEAD_TEST_APISERVER: server = "", FAIRLEAD_TEST_TOKEN_FILE: tokenFile = "" } = process.env;
const token = tokenFile === "" ? "" : readFileSync(tokenFile, "utf8");

const NAMESPACE = `fairlead-events-${process.pid}`;
const IN = `/api/v1/namespaces/${NAMESPACE}`;
const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const NETWORKS = `/apis/k8s.cni.cncf.io/v1/namespaces/${NAMESPACE}/network-attachment-definitions`;
const CRD_NAME = "network-attachment-definitions.k8s.cni.cncf.io";

let folder: string;
let kubeconfig: string;
let connection: ApiConnection;

const ask = async (method: ObjectRequest["method"], path: string, object?: unknown) => {
  const { status, body } = await requestObject(connection, { method, path, object }, "fairlead-test");
  return { status, body: JSON.parse(body) as unknown };
};
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

/** As `kubectl describe service` looks for them. */
async function reasonsOf(uid: string): Promise<readonly unknown[]> {
  const { body } = await ask("GET", `${IN}/events?fieldSelector=involvedObject.uid%3D${uid}`);
  return itemsOf(valueAt(body, "items")).map((event) => valueAt(event, "reason"));
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "fairlead-events-"));
  kubeconfig = join(folder, "kubeconfig");
  const name = "test";
  const config = {
    clusters: [{ name, cluster: { server, "insecure-skip-tls-verify": true } }],
    users: [{ name, user: { token } }],
    contexts: [{ name, context: { cluster: name, user: name } }],
    "current-context": name,
  };
  await writeFile(kubeconfig, JSON.stringify(config));
  connection = await loadConnection({ kubeconfig, onWarning: () => {} });
  await create("/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name: NAMESPACE } });
});
afterAll(async () => {
  for (const one of ["web", "lost"]) await ask("DELETE", `${IN}/services/${one}`);
  await ask("DELETE", `${CRDS}/${CRD_NAME}`);
  await ask("DELETE", `/api/v1/namespaces/${NAMESPACE}`);
  await rm(folder, { recursive: true });
});

test("the agent's Event on a Service has its uid", async () => {
  const uid = await create(`${IN}/services`, service("web"));
  const log = recordedLog();
  const { events: port } = await openSource(configOf([`--kubeconfig=${kubeconfig}`]), "node-a", log);
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

test("fairlead-slices: a network without its NetworkAttachmentDefinition is an Event with the Service's uid, until it is there", async () => {
  await create(CRDS, DEFINITION);
  await expect.poll(async () => (await ask("GET", NETWORKS)).status).toBe(200);
  const labels = { "service.kubernetes.io/service-proxy-name": "storage" };
  const uid = await create(
    `${IN}/services`,
    service("lost", { labels, annotations: { [SERVICE_NETWORK]: "storage" } }),
  );
  const parsed = parseSlicesArguments(
    [`--kubeconfig=${kubeconfig}`, `--metrics-bind-address=127.0.0.1:${await freePort()}`, "--leader-elect=false"],
    "0",
  );
  if (parsed.kind !== "run") throw new Error(JSON.stringify(parsed));
  const [stop, log] = [new AbortController(), recordedLog()];
  const done = runSlices(parsed.config, log, stop.signal);
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
    stop.abort();
    await done;
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
