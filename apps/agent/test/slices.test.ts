import { parseSlicesArguments } from "@fairlead/config";
import { fail, LightApiServer } from "@fairlead/testkit/api-server";
import { afterEach, beforeEach, expect, test } from "vitest";
import { runSlices } from "../src/slices/run.ts";
import { freePort } from "./support/free-port.ts";
import { AT, networkPod, networkService, sliceWrites, writtenAddresses } from "./support/network-objects.ts";
import { recordedLog } from "./support/recorded-log.ts";

let api: LightApiServer;
let server: string;
const running: { stop: AbortController; done: Promise<void> }[] = [];

beforeEach(async () => {
  api = new LightApiServer();
  server = await api.start();
});
afterEach(async () => {
  await Promise.all(running.splice(0).map(end));
  await api.stop();
});

async function start(...flags: readonly string[]) {
  const port = await freePort();
  const parsed = parseSlicesArguments(
    [`--master=${server}`, `--metrics-bind-address=127.0.0.1:${port}`, ...flags],
    "0",
  );
  if (parsed.kind !== "run") throw new Error(JSON.stringify(parsed));
  const [stop, log] = [new AbortController(), recordedLog()];
  const one = { stop, log, port, done: runSlices(parsed.config, log, stop.signal) };
  running.push(one);
  return one;
}

async function end({ stop, done }: { readonly stop: AbortController; readonly done: Promise<void> }): Promise<void> {
  stop.abort();
  await done;
}

const written = () => expect.poll(() => writtenAddresses(api));
const holder = () =>
  (api.store.list(AT.leases)[0]?.["spec"] as { holderIdentity?: string } | undefined)?.holderIdentity;

test("pods' addresses on the network become slices; one pod's change is one write; the Service's end is theirs", async () => {
  api.store.put(AT.services, networkService());
  for (const last of [10, 11]) api.store.put(AT.pods, networkPod(`p${last}`, `192.168.50.${last}`));
  await start();
  await written().toEqual(["192.168.50.10", "192.168.50.11"]);
  expect(sliceWrites(api)).toEqual(["POST"]);
  api.store.put(AT.pods, networkPod("p11", "192.168.50.11", false));
  await written().toEqual(["192.168.50.10", "192.168.50.11 not ready"]);
  expect(sliceWrites(api)).toEqual(["POST", "PUT"]);
  api.store.delete(AT.services, "lab/web");
  await written().toEqual([]);
  expect(sliceWrites(api)).toEqual(["POST", "PUT", "DELETE"]);
});

test("what an earlier process left is taken over; slices of other controllers and Services without the label stay", async () => {
  const managed = (name: string, by: string, service: string) => ({
    metadata: {
      namespace: "lab",
      name,
      labels: { "kubernetes.io/service-name": service, "endpointslice.kubernetes.io/managed-by": by },
    },
    addressType: "IPv4",
    ports: [{ name: "", protocol: "TCP", port: 80 }],
    endpoints: [],
  });
  const own = "fairlead-slices.fairlead.dev";
  api.store.put(AT.slices, managed("web-1", own, "web"));
  api.store.put(AT.slices, managed("gone-1", own, "gone"));
  api.store.put(AT.slices, managed("web-2", "endpointslice-controller.k8s.io", "web"));
  const { metadata, ...plain } = networkService();
  api.store.put(AT.services, { ...plain, metadata: { ...(metadata as object), labels: {}, name: "unlabeled" } });
  api.store.put(AT.services, networkService());
  api.store.put(AT.pods, networkPod("p", "192.168.50.10"));
  await start();
  await written().toEqual(["192.168.50.10"]);
  await expect.poll(() => api.store.get(AT.slices, "lab/gone-1")).toBeUndefined();
  const names = api.store.list(AT.slices).map((slice) => (slice["metadata"] as { name: string }).name);
  expect(names).toEqual(["web-1", "web-2"]);
});

test("of several controllers each has the Services and the slices of its own name", async () => {
  const { metadata, ...rest } = networkService();
  const named = (name: string, proxy: string) => {
    const labels = { "service.kubernetes.io/service-proxy-name": proxy };
    return { ...rest, metadata: { ...(metadata as object), name, labels } };
  };
  api.store.put(AT.services, named("one", "first"));
  api.store.put(AT.services, named("two", "second"));
  api.store.put(AT.pods, networkPod("p", "192.168.50.10"));
  for (const name of ["first", "second"]) {
    await start(`--service-proxy-name=${name}`, `--leader-elect-resource-name=${name}`);
  }
  await written().toEqual(["192.168.50.10", "192.168.50.10"]);
  api.store.put(AT.pods, networkPod("p", "192.168.50.10", false));
  await written().toEqual(["192.168.50.10 not ready", "192.168.50.10 not ready"]);
  expect(sliceWrites(api)).toEqual(["POST", "POST", "PUT", "PUT"]);
});

test("a conflict is read and planned again", async () => {
  api.store.put(AT.services, networkService());
  api.store.put(AT.pods, networkPod("p", "192.168.50.10"));
  const { log } = await start();
  await written().toEqual(["192.168.50.10"]);
  api.intercept(({ method }, response) => {
    if (method !== "PUT") return false;
    fail(response, 409, "Conflict", "the object has been modified");
    return true;
  });
  api.store.put(AT.pods, networkPod("q", "192.168.50.11"));
  await written().toEqual(["192.168.50.10", "192.168.50.11"]);
  expect(log.messages("warn")).toContain("Failed to write EndpointSlices; retrying");
});

test.each([
  ["a headless Service", () => networkService({ clusterIP: "None" }), "HeadlessService"],
  ["a network that is not there", () => networkService(), "NetworkNotFound"],
])("%s is one Event on it and one line", async (_what, service, reason) => {
  const other = { metadata: { namespace: "lab", name: "other" } };
  api.store.put(AT.networks, other);
  api.store.put(AT.services, service());
  const { log } = await start();
  await expect.poll(() => api.store.list(AT.events)).toHaveLength(1);
  // The same again is not said again.
  api.store.put(AT.services, service());
  api.store.put(AT.services, {
    ...networkService(),
    metadata: { ...(networkService()["metadata"] as object), name: "seen" },
  });
  await expect.poll(() => log.lines.some(({ fields }) => fields["service"] === "lab/seen")).toBe(true);
  expect(log.lines.filter(({ fields }) => fields["service"] === "lab/web")).toMatchObject([{ fields: { reason } }]);
  const event = api.store
    .list(AT.events)
    .filter(({ involvedObject }) => (involvedObject as { name: string }).name === "web");
  expect(event).toMatchObject([
    {
      reason,
      involvedObject: { kind: "Service", namespace: "lab", name: "web", uid: "uid-web" },
      reportingComponent: "fairlead-slices",
    },
  ]);
});

test("what is over is one line; the end of a Service with a problem is none", async () => {
  api.store.put(AT.networks, { metadata: { namespace: "lab", name: "storage" } });
  api.store.put(AT.services, networkService({ clusterIP: "None" }));
  const { log } = await start();
  const about = () => log.lines.filter(({ fields }) => fields["service"] === "lab/web").map(({ level }) => level);
  await expect.poll(about).toEqual(["warn"]);
  api.store.put(AT.services, networkService());
  await expect.poll(about).toEqual(["warn", "info"]);
  api.store.put(AT.services, networkService({ clusterIP: "None" }));
  await expect.poll(about).toEqual(["warn", "info", "warn"]);
  api.store.delete(AT.services, "lab/web");
  const headless = networkService({ clusterIP: "None" });
  api.store.put(AT.services, { ...headless, metadata: { ...(headless["metadata"] as object), name: "seen" } });
  await expect.poll(() => log.lines.some(({ fields }) => fields["service"] === "lab/seen")).toBe(true);
  expect(about()).toEqual(["warn", "info", "warn"]);
});

test("one of two writes; when it ends the lease is released, and the other one goes on", async () => {
  api.store.put(AT.services, networkService());
  api.store.put(AT.pods, networkPod("p", "192.168.50.10"));
  const quick = [
    "--leader-elect-lease-duration=2s",
    "--leader-elect-renew-deadline=1s",
    "--leader-elect-retry-period=100ms",
  ];
  const first = await start(...quick);
  await written().toEqual(["192.168.50.10"]);
  const before = holder();
  const second = await start(...quick);
  await expect.poll(() => ready(second.port)).toBe(200);
  expect(second.log.messages()).not.toContain("Leading; EndpointSlices are written by this process");
  await end(first);
  api.store.put(AT.pods, networkPod("q", "192.168.50.11"));
  await written().toEqual(["192.168.50.10", "192.168.50.11"]);
  expect(holder()).not.toBe(before);
  expect(sliceWrites(api)).toEqual(["POST", "PUT"]);
});

test("a Lease that the role does not allow to write is one warning", async () => {
  let refused = 0;
  api.answerInstead = ({ method, path }, response) => {
    if (method === "GET" || !path.includes("/leases")) return false;
    refused += 1;
    fail(response, 403, "Forbidden", "leases is forbidden");
    return true;
  };
  const { log } = await start("--leader-elect-retry-period=10ms");
  await expect.poll(() => refused).toBeGreaterThan(5);
  const warnings = log.messages("warn").filter((line) => line.includes("lease"));
  expect(warnings).toEqual(["Failed to acquire or renew the lease; retrying"]);
});

async function ready(port: number): Promise<number> {
  return (await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => ({ status: 0 }))).status;
}

test("metrics say who leads, what was written and what is wrong", async () => {
  api.store.put(AT.services, networkService({ selector: {} }));
  const { port } = await start();
  await expect.poll(() => api.store.list(AT.events)).toHaveLength(1);
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  expect(text).toMatch(/^fairlead_slices_leader 1$/m);
  expect(text).toMatch(/^fairlead_slices_problems{reason="NoSelector"} 1$/m);
});

test("a resource that the role does not allow is reported once, and nothing is written", async () => {
  api.store.put(AT.services, networkService());
  api.answerInstead = ({ path }, response) => {
    if (path === "/api/v1") response.writeHead(200).end(JSON.stringify({ resources: [{ name: "pods" }] }));
    if (path !== AT.pods) return path === "/api/v1";
    fail(response, 403, "Forbidden", "pods is forbidden");
    return true;
  };
  const { log, port } = await start();
  await expect
    .poll(() => log.lines.filter(({ level }) => level === "error"))
    .toMatchObject([{ fields: { resource: "pods" } }]);
  expect(await ready(port)).toBe(503);
  expect(sliceWrites(api)).toEqual([]);
});
