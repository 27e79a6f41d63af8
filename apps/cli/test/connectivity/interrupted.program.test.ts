import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LightApiServer } from "@fairlead/testkit/api-server";
import { afterAll, beforeAll, expect, test } from "vitest";
import { fairlead } from "../support/run.ts";

const api = new LightApiServer();
let folder = "";
let kubeconfig = "";

beforeAll(async () => {
  const server = await api.start();
  folder = await mkdtemp(join(tmpdir(), "fairlead-connectivity-"));
  kubeconfig = join(folder, "kubeconfig");
  const contexts = [{ name: "c", context: { cluster: "c", user: "u" } }];
  const config = { clusters: [{ name: "c", cluster: { server } }], users: [{ name: "u", user: {} }], contexts };
  await writeFile(kubeconfig, JSON.stringify({ ...config, "current-context": "c" }));
  for (const [name, address] of [
    ["node-a", "172.30.0.11"],
    ["node-b", "172.30.0.12"],
  ]) {
    const status = { conditions: [{ type: "Ready", status: "True" }], addresses: [{ type: "InternalIP", address }] };
    api.store.put("/api/v1/nodes", { metadata: { name }, status });
  }
  const spec = { clusterIP: "10.96.0.1", ipFamilies: ["IPv4"] };
  api.store.put("/api/v1/services", { metadata: { namespace: "default", name: "kubernetes" }, spec });
});
afterAll(async () => {
  await api.stop();
  await rm(folder, { recursive: true });
});

/** Names of what a run makes. */
function made(): readonly string[] {
  return ["/api/v1/namespaces", "/api/v1/services", "/api/v1/pods"].flatMap((path) =>
    (api.store.list(path) as readonly { readonly metadata: { readonly name: string } }[])
      .map(({ metadata }) => metadata.name)
      .filter((name) => name !== "kubernetes"),
  );
}

const argv = () => ["connectivity", "--kubeconfig", kubeconfig, "--image", "any"];

test("an interrupted test takes away what it made", async () => {
  const stop = new AbortController();
  const running = fairlead(argv(), { signal: stop.signal });
  // Its servers never become ready: nothing runs them here.
  try {
    await expect.poll(made).toEqual(expect.arrayContaining(["fairlead-connectivity", "web", "web-a"]));
  } finally {
    stop.abort();
  }
  const { code, err } = await running;
  expect(err).toContain("stopped");
  expect(code).toBe(3);
  expect(made()).toEqual([]);
});

test.each([[], ["--cleanup-only"]])("a namespace of another program is left alone %s", async (...more) => {
  api.store.put("/api/v1/namespaces", { metadata: { name: "mine", labels: {} } });
  const { code, err } = await fairlead([...argv(), "--namespace", "mine", ...more]);
  expect(err).toContain("--namespace=mine: the namespace exists and was not created by this test");
  expect(code).toBe(3);
  expect(made()).toContain("mine");
});

test.each([
  [["--node", "node-a"], 2, "give two nodes"],
  [["--node", "node-a", "--node", "node-x"], 3, "--node=node-x: there is no such Node; there are: node-a, node-b"],
])("%s", async (more, exitCode, message) => {
  const { code, err } = await fairlead([...argv(), ...more]);
  expect(err).toContain(message);
  expect(code).toBe(exitCode);
});
