import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { tlsFolder } from "@fairlead/testkit/api-server";
import { expect, onTestFinished, test } from "vitest";
import recorded from "../../packages/config/src/kubernetes.json" with { type: "json" };
import versions from "../../versions.json" with { type: "json" };
import { collectionPath, createApiClient, objectPath } from "../src/control-plane/api-client.ts";
import { tokenFile } from "../src/control-plane/control-plane.ts";
import { kubernetesModule, kubernetesVersion, requireModule, versionFlags } from "../src/control-plane/programs.ts";
import { type PortRange, portsOutside } from "../src/peer/requests.ts";

test("a client of the API server closes a connection without requests before the server does", async () => {
  const [key, cert, ca] = await Promise.all(
    ["server-key.pem", "server.pem", "ca.pem"].map((name) => readFile(join(tlsFolder, name), "utf8")),
  );
  const server = createServer({ key, cert, keepAliveTimeout: 90_000 }, (_, response) => response.end("{}"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const at = { host: "127.0.0.1", port };
  const api = createApiClient({ at, ca: ca ?? "", token: "token", name: "kubernetes.test" }, 20);
  onTestFinished(api.close);
  for (let call = 0; call < 2; call += 1) {
    const connected = once(server, "secureConnection");
    expect(await api.get("/api/v1/nodes")).toEqual({});
    const [connection] = await connected;
    await once(connection, "close");
  }
});

test("staging modules are replaced by their published versions, others are left", () => {
  const own = {
    Go: "1.26.0",
    Replace: [
      { Old: { Path: "k8s.io/api" }, New: { Path: "./staging/src/k8s.io/api" } },
      { Old: { Path: "example.com/fork" }, New: { Path: "example.com/other" } },
    ],
  };
  expect(kubernetesModule("v1.36.3", own).split("\n")).toEqual([
    "module fairlead.test/kubernetes",
    "go 1.26.0",
    "require k8s.io/kubernetes v1.36.3",
    "replace (",
    "\tk8s.io/api => k8s.io/api v0.36.3",
    ")",
    "",
  ]);
  const etcd = { path: "go.etcd.io/etcd/server/v3", version: "v3.7.3" };
  expect(requireModule(etcd, "1.26.0")).toContain("require go.etcd.io/etcd/server/v3 v3.7.3");
  expect(requireModule({ ...etcd, replaced: { "a.test/b": "v1.2.3" } }, "1.26.0")).toContain(
    "\nreplace a.test/b => a.test/b v1.2.3\n",
  );
});

test("programs say their version", () => {
  expect(versionFlags("v1.36.3")).toContain("gitVersion=v1.36.3");
  expect(versionFlags("v1.36.3")).toContain("gitMinor=36");
});

test("what is recorded of kube-proxy is of the release that versions.json names (pnpm kubernetes VERSION --write)", () => {
  expect(versions.kubeProxy.startsWith(`v${recorded.release}.`)).toBe(true);
});

test("versions: a minor one means its newest release", () => {
  for (const [minor, release] of Object.entries(versions.releases)) {
    expect(kubernetesVersion(minor)).toBe(release);
    expect(kubernetesVersion(minor.slice(1))).toBe(release);
  }
  expect(kubernetesVersion("v1.38.0-beta.0")).toBe("v1.38.0-beta.0");
  expect(kubernetesVersion("v1.35.9")).toBe("v1.35.9");
  expect(() => kubernetesVersion("v2")).toThrow(`give ${Object.keys(versions.releases).join(", ")} or a full one`);
});

test("paths of objects", () => {
  const metadata = { name: "web", namespace: "default" };
  expect(objectPath({ apiVersion: "v1", kind: "Service", metadata })).toBe("/api/v1/namespaces/default/services/web");
  const slice = { apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", metadata };
  expect(collectionPath(slice)).toBe("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices");
  expect(objectPath({ apiVersion: "v1", kind: "Node", metadata: { name: "a" } })).toBe("/api/v1/nodes/a");
  expect(() => collectionPath({ apiVersion: "v1", kind: "Secret", metadata })).toThrow(/Secret/);
});

test("the proxy is kube-proxy's user and in no group", () => {
  expect(tokenFile().split("\n")).toContainEqual(expect.stringMatching(/^[\w-]+,system:kube-proxy,system:kube-proxy$/));
});

const RANGES: readonly (readonly [string, PortRange, PortRange])[] = [
  ["the kernel's default", [32_768, 60_999], [11_000, 29_999]],
  ["the one of the lab's namespaces", [10_000, 29_999], [33_000, 60_999]],
];

test.each(RANGES)("a peer's source ports are not what the kernel picks: %s", (_, kernel, wanted) => {
  expect(portsOutside(kernel)).toEqual(wanted);
});
