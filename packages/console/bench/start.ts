/**
 * From the start of the built `fairlead console` until the first view, and then the list of services, stand in Debian's
 * chromium: of manifests in YAML and in JSON, and of a cluster on the light API server. Each run has a process and a
 * visitor of its own; the browser runs already. Build first (pnpm build).
 *
 *   pnpm exec node --conditions=@fairlead/source bench/start.ts [services] [endpoints] [runs]
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { endpointSlice, kubernetesService, node, type RawObject, service } from "@fairlead/testkit";
import { collectionOf, LightApiServer } from "@fairlead/testkit/api-server";
import { stringify } from "yaml";
import { openBrowser } from "../test/support/browser.ts";
import { measured, type Start } from "./measured-start.ts";

const [services = 1_000, endpoints = 10, runs = 7] = process.argv.slice(2).map(Number);
const objects = [...kubernetesService(), node("node-a", { addresses: ["10.201.0.10"] }), ...workload()];
const NODE = ["--node", "node-a", "--cluster-cidr", "10.144.0.0/12"];

await using opened = new AsyncDisposableStack();
const folder = await mkdtemp(join(tmpdir(), "fairlead-console-start-"));
opened.defer(() => rm(folder, { recursive: true }));
const browser = opened.use(await openBrowser());
const [yaml, json, kubeconfig] = ["objects.yaml", "objects.json", "kubeconfig"].map((name) => join(folder, name));
await writeFile(String(yaml), objects.map((object) => stringify(object)).join("---\n"));
await writeFile(String(json), JSON.stringify(objects));
await writeFile(String(kubeconfig), await clusterConfig());

console.log(
  `${services} services of ${endpoints} endpoints; medians of ${runs} runs, milliseconds from the start; load average ${loadavg()[0]?.toFixed(1)}`,
);
const count = objects.filter(({ kind }) => kind === "Service").length;
const sources = {
  "manifests, YAML": ["-f", yaml],
  "manifests, JSON": ["-f", json],
  cluster: ["--kubeconfig", kubeconfig],
};
for (const [what, where] of Object.entries(sources)) {
  const starts: Start[] = [];
  for (let run = 0; run < runs; run += 1) starts.push(await measured(browser, [...where.map(String), ...NODE], count));
  const median = (of: (start: Start) => number) => Math.round(starts.map(of).sort((a, b) => a - b)[runs >> 1] ?? 0);
  const [slowest, fastest] = [Math.max, Math.min].map((most) => Math.round(most(...starts.map(({ view }) => view))));
  console.log(
    `${what}: address ${median(({ address }) => address)}, first view ${median(({ view }) => view)} (${fastest} to ${slowest}), ` +
      `list ${median(({ list }) => list)}; processor time of the server until then ${median(({ cpu }) => cpu)}; ` +
      `everything once more by the stream ${median(({ again }) => again)}`,
  );
}

async function clusterConfig(): Promise<string> {
  const server = new LightApiServer();
  for (const object of objects) server.store.put(collectionOf(object), object);
  const url = await server.start();
  opened.defer(() => server.stop());
  const context = { name: "c", context: { cluster: "c", user: "u" } };
  const config = { clusters: [{ name: "c", cluster: { server: url } }], contexts: [context], "current-context": "c" };
  return JSON.stringify({ ...config, users: [{ name: "u", user: {} }] });
}

function workload(): RawObject[] {
  return Array.from({ length: services }, (_, at) => {
    const name = `service-${String(at).padStart(5, "0")}`;
    const clusterIP = `10.96.${(at >> 8) + 1}.${at & 255}`;
    const addresses = Array.from({ length: endpoints }, (_, index) => ({
      address: `10.${144 + (at >> 12)}.${(at >> 4) & 255}.${(((at & 15) * 10 + index) % 250) + 1}`,
      nodeName: index % 2 === 0 ? "node-a" : "node-b",
    }));
    return [
      service(name, { clusterIPs: [clusterIP], ports: [{ port: 80, targetPort: 8080 }] }),
      endpointSlice(`${name}-1`, { service: name, family: "IPv4", ports: [{ port: 8080 }], endpoints: addresses }),
    ];
  }).flat();
}
