import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fail } from "@fairlead/testkit/api-server";
import { expect, test } from "vitest";
import { controllerForEach, LASTING_LEASE } from "../support/controller.ts";
import { kubeconfigOf } from "../support/fake-node.ts";
import { AT, pod, service, sliceWrites, writtenAddresses } from "../support/slices.ts";

const on = controllerForEach();

const written = () => expect.poll(() => writtenAddresses(on.api));
const holder = () =>
  (on.api.store.list(AT.leases)[0]?.["spec"] as { holderIdentity?: string } | undefined)?.holderIdentity;

test("pods' addresses on the network become slices; one pod's change is one write; the Service's end is theirs", async () => {
  on.api.store.put(AT.services, service());
  for (const last of [10, 11]) on.api.store.put(AT.pods, pod({ name: `p${last}`, ips: [`192.168.50.${last}`] }));
  await on.start();
  await written().toEqual(["192.168.50.10", "192.168.50.11"]);
  expect(sliceWrites(on.api)).toEqual(["POST"]);
  on.api.store.put(AT.pods, pod({ name: "p11", ips: ["192.168.50.11"], ready: false }));
  await written().toEqual(["192.168.50.10", "192.168.50.11 not ready"]);
  expect(sliceWrites(on.api)).toEqual(["POST", "PUT"]);
  on.api.store.delete(AT.services, "lab/web");
  await written().toEqual([]);
  expect(sliceWrites(on.api)).toEqual(["POST", "PUT", "DELETE"]);
});

test("what an earlier process left is taken over; slices of other controllers and Services without the label stay", async () => {
  const managed = (name: string, by: string, service: string) => ({
    metadata: {
      namespace: "lab",
      name,
      labels: { "kubernetes.io/service-name": service, "endpointslice.kubernetes.io/managed-by": by },
    },
    addressType: "IPv4",
    ports: [{ name: "http", protocol: "TCP", port: 8080 }],
    endpoints: [],
  });
  const own = "networks.fairlead.dev";
  on.api.store.put(AT.slices, managed("web-1", own, "web"));
  on.api.store.put(AT.slices, managed("gone-1", own, "gone"));
  on.api.store.put(AT.slices, managed("web-2", "endpointslice-controller.k8s.io", "web"));
  const { metadata, ...plain } = service();
  on.api.store.put(AT.services, { ...plain, metadata: { ...(metadata as object), labels: {}, name: "unlabeled" } });
  on.api.store.put(AT.services, service());
  on.api.store.put(AT.pods, pod({ name: "p", ips: ["192.168.50.10"] }));
  await on.start();
  await written().toEqual(["192.168.50.10"]);
  await expect.poll(() => on.api.store.get(AT.slices, "lab/gone-1")).toBeUndefined();
  const names = on.api.store.list(AT.slices).map((slice) => (slice["metadata"] as { name: string }).name);
  expect(names).toEqual(["web-1", "web-2"]);
});

test("of several controllers each has the Services and the slices of its own name", async () => {
  const { metadata, ...rest } = service();
  const named = (name: string, proxy: string) => {
    const labels = { "service.kubernetes.io/service-proxy-name": proxy };
    return { ...rest, metadata: { ...(metadata as object), name, labels } };
  };
  on.api.store.put(AT.services, named("one", "first"));
  on.api.store.put(AT.services, named("two", "second"));
  on.api.store.put(AT.pods, pod({ name: "p", ips: ["192.168.50.10"] }));
  for (const name of ["first", "second"]) {
    await on.start(`--service-proxy-name=${name}`, `--leader-elect-resource-name=${name}`);
  }
  await written().toEqual(["192.168.50.10", "192.168.50.10"]);
  on.api.store.put(AT.pods, pod({ name: "p", ips: ["192.168.50.10"], ready: false }));
  await written().toEqual(["192.168.50.10 not ready", "192.168.50.10 not ready"]);
  expect(sliceWrites(on.api)).toEqual(["POST", "POST", "PUT", "PUT"]);
});

test.each([
  ["a headless Service", () => service({ spec: { clusterIP: "None" } }), "HeadlessService"],
  ["a network that is not there", () => service(), "NetworkNotFound"],
])("%s is one Event on it and one line", async (_what, made, reason) => {
  const other = { metadata: { namespace: "lab", name: "other" } };
  on.api.store.put(AT.networks, other);
  on.api.store.put(AT.services, made());
  const { log } = await on.start();
  await expect.poll(() => on.api.store.list(AT.events)).toHaveLength(1);
  // The same again is not said again.
  on.api.store.put(AT.services, made());
  on.api.store.put(AT.services, {
    ...service(),
    metadata: { ...(service()["metadata"] as object), name: "seen" },
  });
  await expect.poll(() => log.lines.some(({ fields }) => fields["service"] === "lab/seen")).toBe(true);
  expect(log.lines.filter(({ fields }) => fields["service"] === "lab/web")).toMatchObject([{ fields: { reason } }]);
  const event = on.api.store
    .list(AT.events)
    .filter(({ involvedObject }) => (involvedObject as { name: string }).name === "web");
  expect(event).toMatchObject([
    {
      reason,
      involvedObject: { kind: "Service", namespace: "lab", name: "web", uid: "uid-web" },
      reportingComponent: "fairlead-controller",
    },
  ]);
});

test("what is over is one line; the end of a Service with a problem is none", async () => {
  on.api.store.put(AT.networks, { metadata: { namespace: "lab", name: "storage" } });
  on.api.store.put(AT.services, service({ spec: { clusterIP: "None" } }));
  const { log } = await on.start();
  const about = () => log.lines.filter(({ fields }) => fields["service"] === "lab/web").map(({ level }) => level);
  await expect.poll(about).toEqual(["warn"]);
  on.api.store.put(AT.services, service());
  await expect.poll(about).toEqual(["warn", "info"]);
  on.api.store.put(AT.services, service({ spec: { clusterIP: "None" } }));
  await expect.poll(about).toEqual(["warn", "info", "warn"]);
  on.api.store.delete(AT.services, "lab/web");
  const headless = service({ spec: { clusterIP: "None" } });
  on.api.store.put(AT.services, { ...headless, metadata: { ...(headless["metadata"] as object), name: "seen" } });
  await expect.poll(() => log.lines.some(({ fields }) => fields["service"] === "lab/seen")).toBe(true);
  expect(about()).toEqual(["warn", "info", "warn"]);
});

test("one of two writes; when it ends the lease is released, and the other one goes on", async () => {
  on.api.store.put(AT.services, service());
  on.api.store.put(AT.pods, pod({ name: "p", ips: ["192.168.50.10"] }));
  const first = await on.start(...LASTING_LEASE);
  await written().toEqual(["192.168.50.10"]);
  const before = holder();
  const second = await on.start(...LASTING_LEASE);
  await expect.poll(() => ready(second.port)).toBe(200);
  expect(second.log.messages()).not.toContain("Leading; this process writes");
  await first.end();
  on.api.store.put(AT.pods, pod({ name: "q", ips: ["192.168.50.11"] }));
  await written().toEqual(["192.168.50.10", "192.168.50.11"]);
  expect(holder()).not.toBe(before);
  expect(sliceWrites(on.api)).toEqual(["POST", "PUT"]);
});

test("a Lease that the role does not allow to write is one warning", async () => {
  let refused = 0;
  on.api.answerInstead = ({ method, path }, response) => {
    if (method === "GET" || !path.includes("/leases")) return false;
    refused += 1;
    fail(response, 403, "Forbidden", "leases is forbidden");
    return true;
  };
  const { log } = await on.start("--leader-elect-retry-period=10ms");
  await expect.poll(() => refused).toBeGreaterThan(5);
  const warnings = log.messages("warn").filter((line) => line.includes("lease"));
  expect(warnings).toEqual(["Failed to acquire or renew the lease; retrying"]);
});

async function ready(port: number): Promise<number> {
  return (await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => ({ status: 0 }))).status;
}

test("metrics say which instance leads, what was written and what is wrong", async () => {
  const wrong = service({ spec: { selector: {} } });
  on.api.store.put(AT.services, { ...wrong, metadata: { ...(wrong["metadata"] as object), name: "wrong" } });
  on.api.store.put(AT.services, service());
  on.api.store.put(AT.pods, pod({ name: "p", ips: ["192.168.50.10"] }));
  const { port } = await on.start();
  // The other Service's network is not there either, which costs it no endpoint.
  const reasons = () => on.api.store.list(AT.events).map(({ reason }) => String(reason));
  await expect.poll(() => reasons().sort()).toEqual(["NetworkNotFound", "NoSelector"]);
  await written().toEqual(["192.168.50.10"]);
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  expect(text).toMatch(/^fairlead_controller_leader 1$/m);
  expect(text).toMatch(/^fairlead_controller_problems{reason="NoSelector"} 1$/m);
  expect(text).toMatch(
    /^fairlead_controller_writes_total{resource="endpointslices",verb="create",result="success"} 1$/m,
  );
});

test("a resource that the role does not allow is reported once, and nothing is written", async () => {
  on.api.store.put(AT.services, service());
  on.api.answerInstead = ({ path }, response) => {
    if (path === "/api/v1") response.writeHead(200).end(JSON.stringify({ resources: [{ name: "pods" }] }));
    if (path !== AT.pods) return path === "/api/v1";
    fail(response, 403, "Forbidden", "pods is forbidden");
    return true;
  };
  const { log, port } = await on.start();
  await expect
    .poll(() => log.lines.filter(({ level }) => level === "error"))
    .toMatchObject([{ fields: { resource: "pods" } }]);
  expect(await ready(port)).toBe(503);
  expect(sliceWrites(on.api)).toEqual([]);
});

test("another server in its kubeconfig ends the program, to be started again", async () => {
  const file = join(await mkdtemp(join(tmpdir(), "fairlead-controller-")), "kubeconfig");
  const written = (server: string) => writeFile(file, kubeconfigOf({ server }));
  await written(on.server);
  const { done } = await on.start("--master=", `--kubeconfig=${file}`);
  on.running.pop();
  const ended = expect(done).rejects.toThrow("the kubeconfig changed");
  await expect.poll(() => holder() ?? "").not.toBe("");
  await written("http://192.0.2.1:6443");
  await ended;
});
