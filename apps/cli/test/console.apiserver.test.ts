import { readFileSync } from "node:fs";
import { runs } from "@fairlead/tooling/runs";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Cluster } from "../src/cluster/cluster.ts";
import { type Manifest, NODES, resourceOf } from "../src/cluster/resources.ts";
import { Kubeconfigs } from "./support/files.ts";
import { openedConsole } from "./support/opened-console.ts";

/** Against a real kube-apiserver, as cluster.apiserver.test.ts is. */
const { FAIRLEAD_TEST_APISERVER: server = "", FAIRLEAD_TEST_TOKEN_FILE: tokenFile = "" } = process.env;
const token = tokenFile === "" ? "" : readFileSync(tokenFile, "utf8");

/** FAIRLEAD_RUNS=100 makes them 2,000. */
const SERVICES = runs(20);
const NAMESPACE = `fairlead-console-${process.pid}`;
const NODE = `${NAMESPACE}-node`;

const files = new Kubeconfigs();
let admin: Cluster;
/** Those that are there, in the order in which they came. */
const made: Manifest[] = [];

const kubeconfig = (name: string, user: object) =>
  files.write(name, { server, "insecure-skip-tls-verify": true }, { token, ...user });

async function make(...objects: readonly Manifest[]): Promise<void> {
  await inParts(objects, (object) => admin.create(object));
  made.push(...objects);
}

/** A few at once: a server has other callers. */
async function inParts(objects: readonly Manifest[], work: (object: Manifest) => Promise<unknown>): Promise<void> {
  for (let at = 0; at < objects.length; at += 20) await Promise.all(objects.slice(at, at + 20).map(work));
}

const services = (): readonly Manifest[] =>
  Array.from({ length: SERVICES }, (_, at) => ({
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: `web-${at}`, namespace: NAMESPACE },
    spec: { ports: [{ port: 80 }] },
  }));

const slices = (): readonly Manifest[] =>
  Array.from({ length: SERVICES }, (_, at) => ({
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name: `web-${at}-a`, namespace: NAMESPACE, labels: { "kubernetes.io/service-name": `web-${at}` } },
    addressType: "IPv4",
    ports: [{ name: "", port: 8080 }],
    endpoints: [1, 2, 3, 4, 5].map((one) => ({ addresses: [`10.144.${one}.${at % 250}`], nodeName: NODE })),
  }));

const node: Manifest = { apiVersion: "v1", kind: "Node", metadata: { name: NODE } };

function roleOf(user: string): readonly Manifest[] {
  const metadata = { name: user };
  const verbs = ["get", "list", "watch"];
  const apiVersion = "rbac.authorization.k8s.io/v1";
  return [
    {
      apiVersion,
      kind: "ClusterRole",
      metadata,
      rules: [
        { apiGroups: [""], resources: ["services"], verbs },
        { apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs },
      ],
    },
    {
      apiVersion,
      kind: "ClusterRoleBinding",
      metadata,
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: user },
      subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: user }],
    },
  ];
}

beforeAll(async () => {
  admin = files.cluster({ KUBECONFIG: kubeconfig("admin", {}) });
  await make({ apiVersion: "v1", kind: "Namespace", metadata: { name: NAMESPACE } }, node);
  await make(...services(), ...slices(), ...roleOf("fairlead-viewer"));
});
afterAll(async () => {
  // A namespace's end takes a controller that may not be there.
  const last = made.filter(({ kind }) => kind !== "Namespace");
  await inParts(last, (object) => admin.remove(resourceOf(object), object.metadata.name));
});

async function opened(signal: AbortSignal, user: string, more: object = {}) {
  const env = { KUBECONFIG: kubeconfig(user, more) };
  const flags = ["--node", NODE, "--cluster-cidr", "10.144.0.0/16"];
  return openedConsole(signal, ["--no-open", ...flags], { env });
}

test("the list stays whole through a Node's heartbeats, labels, deletion and creation", async ({ signal }) => {
  const running = await opened(signal, "admin");
  const rows = async () => {
    const { services: all } = await running.beginning();
    return all.filter(({ service }) => String(service).startsWith(`${NAMESPACE}/`)).length;
  };
  expect(await rows()).toBe(SERVICES);
  const heartbeat = (at: number) => {
    const lastHeartbeatTime = new Date(1_800_000_000_000 + at * 1_000).toISOString();
    const conditions = [{ type: "Ready", status: "True", lastHeartbeatTime }];
    return admin.patch({ ...NODES, plural: `nodes/${NODE}` }, "status", { status: { conditions } });
  };
  for (let at = 0; at < 40; at += 1) {
    await heartbeat(at);
    if (at % 10 === 9) expect(await rows()).toBe(SERVICES);
  }
  await admin.patch(NODES, NODE, { metadata: { labels: { note: "any" } } });
  expect(await rows()).toBe(SERVICES);
  await admin.patch(NODES, NODE, { metadata: { labels: { "topology.kubernetes.io/zone": "west" } } });
  await running.eventsUntil(/"zone":"west"/);
  expect(await rows()).toBe(SERVICES);
  await admin.remove(NODES, NODE);
  await running.eventsUntil(/"deleted":true/);
  expect(await rows()).toBe(SERVICES);
  await admin.create(node);
  expect(await rows()).toBe(SERVICES);
  const { code, err } = await running.close();
  expect([code, err]).toEqual([0, expect.not.stringContaining("API server")]);
});

test("a user who may not list Nodes sees the services, and that", async ({ signal }) => {
  const running = await opened(signal, "fairlead-viewer", { as: "fairlead-viewer" });
  const { begin, services: all } = await running.beginning();
  expect(all.length).toBeGreaterThanOrEqual(SERVICES);
  expect(begin["source"]).toEqual({ nodesForbidden: true });
  await running.close();
});

test("a user who may not read services is given the server's words while the page opens", async ({ signal }) => {
  const running = await opened(signal, "eve", { as: "eve" });
  const seen = await running.eventsUntil(/event: source\ndata: .*403/);
  expect(seen).toMatch(/"problem":"refused".*403.*User \\"eve\\" cannot (?:list|watch)/);
  expect(seen).not.toContain("event: begin");
  await running.close();
});
