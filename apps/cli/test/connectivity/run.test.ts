import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LightApiServer } from "@fairlead/testkit/api-server";
import { expect, onTestFinished, test } from "vitest";
import { waitFor } from "../../src/commands/connectivity/act.ts";
import { ask } from "../../src/commands/connectivity/pod/ask.ts";
import { andCleaned } from "../../src/commands/connectivity/run.ts";
import { CommandFailure } from "../../src/frame/errors.ts";
import { fairlead } from "../support/run.ts";

test("why a test failed is said before it is cleaned up, and is not lost when that fails", async () => {
  const steps: string[] = [];
  const failed = () => Promise.reject(new CommandFailure("waited 180 s for pod web-a: it is Pending"));
  const clean = async () => {
    steps.push("cleaning");
    throw new CommandFailure("pods/web-a is not gone 120 s after its deletion");
  };
  await expect(andCleaned(failed, clean, (line) => steps.push(line))).rejects.toThrow(
    "the test failed; not everything was removed: pods/web-a is not gone 120 s after its deletion",
  );
  expect(steps).toEqual(["waited 180 s for pod web-a: it is Pending", "cleaning"]);
});

test("what is waited for is said while it is waited for", async () => {
  const said: string[] = [];
  const acting = { signal: new AbortController().signal, warn: (line: string) => void said.push(line) };
  let looks = 0;
  const look = async () => {
    looks += 1;
    return looks < 3 ? "ErrImagePull" : { ready: true };
  };
  await waitFor("pod web-a", acting, look, 180_000, 0);
  expect(said).toEqual(["waiting for pod web-a, up to 180 s: ErrImagePull"]);
});

test("a wrong node is refused before anything is made or waited for", async () => {
  const api = new LightApiServer();
  const server = await api.start();
  const folder = await mkdtemp(join(tmpdir(), "fairlead-connectivity-"));
  onTestFinished(async () => {
    await api.stop();
    await rm(folder, { recursive: true });
  });
  const kubeconfig = join(folder, "kubeconfig");
  const config = {
    clusters: [{ name: "c", cluster: { server } }],
    users: [{ name: "u", user: {} }],
    contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
    "current-context": "c",
  };
  await writeFile(kubeconfig, JSON.stringify(config));
  api.store.put("/api/v1/nodes", { metadata: { name: "node-a" } });
  api.store.put("/api/v1/namespaces", {
    metadata: { name: "fairlead-connectivity", labels: { "app.kubernetes.io/managed-by": "fairlead-connectivity" } },
  });
  const { code, err } = await fairlead(["connectivity", "--node", "node-a", "--node", "node-z"], {
    env: { KUBECONFIG: kubeconfig },
  });
  expect(code).toBe(3);
  expect(err).toMatch(/^--node=node-z: there is no such Node; there are: node-a/);
  expect(api.requests.filter(({ method }) => method !== "GET")).toEqual([]);
  expect(api.requests.filter(({ path }) => path.includes("fairlead-connectivity"))).toEqual([]);
});

test("a client reads no answer without end", async () => {
  const piece = "x".repeat(1 << 16);
  const server = createServer((_request, response) => {
    const more = () => {
      while (response.write(piece));
    };
    response.on("drain", more);
    more();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  expect(await ask({ protocol: "TCP", address: "127.0.0.1", port })).toEqual({
    error: "an answer without end, which is none of the test's servers",
  });
});
