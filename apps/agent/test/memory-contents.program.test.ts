import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "@fairlead/base/testing";
import { createRunner, lines } from "@fairlead/kernel";
import { LightApiServer, tlsFolder } from "@fairlead/testkit/api-server";
import { afterAll, expect, test } from "vitest";
import { freePort } from "./support/free-port.ts";

const bundle = join(import.meta.dirname, "..", "dist", "main.js");
/** Planted in the agent's memory: a reader of it has the agent's rights in the cluster. */
const TOKEN = "planted-bearer-token-5f1c";
const FOLDERS: string[] = [];
afterAll(() => Promise.all(FOLDERS.map((dir) => rm(dir, { recursive: true }))));

const kubeconfig = (server: string) =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "a",
    clusters: [{ name: "a", cluster: { server, "insecure-skip-tls-verify": true } }],
    users: [{ name: "a", user: { token: TOKEN } }],
    contexts: [{ name: "a", context: { cluster: "a", user: "a" } }],
  });

const METRICS = [
  "/healthz?verbose",
  "/healthz/ping",
  "/metrics",
  "/metrics/slis",
  "/proxyMode",
  "/configz",
  "/ownership",
  "/ownership/accept",
  "/relays",
  "/statusz",
  "/flagz",
  "/debug/pprof/",
  "/debug/pprof/profile?seconds=0.1",
  "/debug/pprof/heap",
];
const HEALTH = ["/healthz", "/livez"];

/** A certificate for 127.0.0.1. */
async function tls(): Promise<{ readonly key: string; readonly cert: string }> {
  const read = (name: string) => readFile(join(tlsFolder, name), "utf8");
  return { key: await read("server-key.pem"), cert: await read("server.pem") };
}

test("nothing that the agent serves over HTTP holds the bearer token", async ({ signal }) => {
  const dir = await mkdtemp(join(tmpdir(), "fairlead-contents-"));
  FOLDERS.push(dir);
  const [metrics, health] = [await freePort(), await freePort()];
  const api = new LightApiServer(await tls());
  api.token = TOKEN;
  await writeFile(join(dir, "kubeconfig"), kubeconfig(await api.start()));
  const flags = [
    ...["--proxy-mode=userspace", "--userspace-only", "-v=2", "--profiling"],
    `--state-dir=${join(dir, "state")}`,
    `--kubeconfig=${join(dir, "kubeconfig")}`,
    `--metrics-bind-address=127.0.0.1:${metrics}`,
    `--healthz-bind-address=127.0.0.1:${health}`,
    "--feature-gates=ComponentStatusz=true,ComponentFlagz=true",
  ];
  const run = ["sh", "-c", 'echo "$$"; exec "$@" 2>&1', "sh", process.execPath, bundle, ...flags] as const;
  const asked = new Map<string, string>();
  const log: string[] = [];
  for await (const line of lines(createRunner().stream(run, { timeoutMs: 0 }))) {
    log.push(line);
    if (log.filter((one) => one.includes('"Listening"')).length < 2 || asked.size > 0) continue;
    // From now on the token is on its way in each of the requests that stay open.
    await until(signal, () => api.openWatches > 0);
    for (const [port, paths] of [
      [metrics, METRICS],
      [health, HEALTH],
    ] as const) {
      for (const path of paths) {
        const url = `http://127.0.0.1:${port}${path}`;
        asked.set(url, await (await fetch(url)).text());
      }
    }
    process.kill(Number(log[0]), "SIGTERM");
  }
  await api.stop();
  expect([...asked].filter(([, body]) => body.includes(TOKEN)).map(([url]) => url)).toEqual([]);
  expect(asked.size, log.join("\n")).toBe(METRICS.length + HEALTH.length);
  // An endpoint that comes later is to be asked as well.
  const listed = /^Paths: (.*)$/m.exec(asked.get(`http://127.0.0.1:${metrics}/statusz`) ?? "")?.[1]?.split(" ") ?? [];
  expect(listed.length).toBeGreaterThan(5);
  for (const folder of listed) expect(METRICS.map((path) => `/${path.split(/[/?]/)[1]}`)).toContain(folder);
});
