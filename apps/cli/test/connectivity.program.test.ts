import { join } from "node:path";
import { createRunner, lines } from "@fairlead/kernel";
import { LightApiServer } from "@fairlead/testkit/api-server";
import { afterAll, beforeAll, expect, test } from "vitest";
import { kubeconfigFor } from "./support/files.ts";
import { fairlead } from "./support/run.ts";

const BUNDLE = join(import.meta.dirname, "..", "dist", "main.js");

const api = new LightApiServer();
let kubeconfig = "";

beforeAll(async () => {
  kubeconfig = kubeconfigFor(await api.start());
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
afterAll(() => api.stop());

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

async function killedRun(): Promise<void> {
  const program = ["sh", "-c", 'echo "$$"; exec "$@"', "sh", process.execPath, BUNDLE, ...argv()] as const;
  const ended = (async () => {
    for await (const line of lines(createRunner().stream(program, { timeoutMs: 0 }))) {
      await expect.poll(made).toEqual(expect.arrayContaining(["fairlead-connectivity", "web", "web-a", "web-b"]));
      process.kill(Number(line), "SIGKILL");
    }
  })();
  await expect(ended).rejects.toMatchObject({ reason: "signal", signal: "SIGKILL" });
}

test("what a run that was killed with -9 leaves is its namespace, which --cleanup-only takes away", async () => {
  await killedRun();
  const left = api.store.list("/api/v1/pods") as readonly { readonly metadata: { readonly namespace: string } }[];
  expect(new Set(left.map(({ metadata }) => metadata.namespace))).toEqual(new Set(["fairlead-connectivity"]));
  expect(await fairlead([...argv(), "--cleanup-only"])).toMatchObject({ code: 0 });
  expect(made()).toEqual([]);
});

test("the run after one that was killed with -9 goes on with what is there, and takes it away", async () => {
  await killedRun();
  const before = made();
  const stop = new AbortController();
  const running = fairlead(argv(), { signal: stop.signal });
  try {
    await expect.poll(() => api.requests.filter(({ method }) => method === "POST").length).toBeGreaterThan(0);
    await expect.poll(made).toEqual(expect.arrayContaining([...before]));
  } finally {
    stop.abort();
  }
  expect((await running).code).toBe(3);
  expect(made()).toEqual([]);
});

test.each([[], ["--cleanup-only"]])("a namespace of another program is not touched %s", async (...more) => {
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
