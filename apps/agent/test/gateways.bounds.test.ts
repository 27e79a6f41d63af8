import { readFile } from "node:fs/promises";
import { LightApiServer } from "@fairlead/testkit/api-server";
import { AGENT_NODE_OPTIONS } from "@fairlead/tooling/agent-node";
import { expect, test } from "vitest";
import { CONTROLLER, mostMegabytes, started } from "./support/bundle.ts";
import { backend, COLLECTIONS, gateway, gatewayClass, listener, type Made, route, slice } from "./support/gateways.ts";
import { freePort } from "./support/http.ts";

const [GATEWAYS, BACKENDS, ENDPOINTS] = [1_000, 100, 10];
/** Routes at one listener, all but one of which wait. */
const CROWD = 1_000;
const CHANGES = 5;
/** MB of resident memory, and milliseconds of the process's own time for one backend's change. */
const [MOST_MB, MOST_MS] = [150, 100];

function* objects(): Generator<Made> {
  yield gatewayClass();
  for (let at = 0; at < BACKENDS; at += 1) {
    yield backend(`web-${at}`);
    yield slice(`web-${at}`, addresses(at));
  }
  for (let at = 0; at < GATEWAYS; at += 1) {
    yield gateway(`gw-${at}`, [listener("tcp", 9_000)]);
    const backends = [0, 1].map((next) => ({ name: `web-${(at + next) % BACKENDS}`, port: 80, weight: 9 - 8 * next }));
    yield route(`r-${at}`, { parents: [{ name: `gw-${at}` }], backends });
  }
  for (let at = 0; at < CROWD; at += 1)
    yield route(`crowd-${at}`, { parents: [{ name: "gw-0" }], created: "2026-02-01T00:00:00Z" });
}

const addresses = (backendAt: number) => Array.from({ length: ENDPOINTS }, (_, at) => `10.1.${backendAt}.${at}`);

test(`with ${GATEWAYS} Gateways, each with a route, and ${CROWD} more at one of them, it stays below ${MOST_MB} MB, and a backend's change is one write`, async ({
  annotate,
}) => {
  const api = new LightApiServer();
  const server = await api.start();
  const wrote = (from: number) =>
    api.requests.slice(from).filter(({ method, path }) => method !== "GET" && !path.includes("/leases"));
  const statuses = (kind: "Gateway" | "TCPRoute") =>
    api.store.list(COLLECTIONS[kind]).filter(({ status }) => status !== undefined).length;
  try {
    for (const { kind, raw } of objects()) api.store.put(COLLECTIONS[kind], raw);
    // One that leads to one backend, so that its change is one write in all.
    api.store.put(COLLECTIONS.Service, backend("single").raw);
    api.store.put(COLLECTIONS.EndpointSlice, slice("single", ["10.9.0.1"]).raw);
    api.store.put(COLLECTIONS.Gateway, gateway("single", [listener("tcp", 9_000)]).raw);
    api.store.put(
      COLLECTIONS.TCPRoute,
      route("single", { parents: [{ name: "single" }], backends: [{ name: "single", port: 80 }] }).raw,
    );
    const flags = [`--master=${server}`, "--jobs=gateways", `--metrics-bind-address=127.0.0.1:${await freePort()}`];
    let pid = 0;
    for await (const line of started(process.execPath, ...AGENT_NODE_OPTIONS, CONTROLLER, ...flags)) {
      if (pid === 0) pid = Number(line);
      if (!line.includes("Leading")) continue;
      await expect.poll(() => statuses("Gateway")).toBe(GATEWAYS + 1);
      await expect.poll(() => statuses("TCPRoute")).toBe(GATEWAYS + CROWD + 1);
      const took: number[] = [];
      // The first one comes behind what the start has left to do, which is not the cost of a change.
      for (let change = 0; change <= CHANGES; change += 1) {
        const before = api.requests.length;
        const used = await ownMilliseconds(pid);
        api.store.put(COLLECTIONS.EndpointSlice, slice("single", [`10.9.0.${change + 2}`]).raw);
        await expect.poll(() => wrote(before).length).toBe(1);
        if (change > 0) took.push((await ownMilliseconds(pid)) - used);
        const path = expect.stringContaining("/endpointslices/single-fairlead-");
        expect(wrote(before)).toMatchObject([{ method: "PUT", path }]);
      }
      const most = await mostMegabytes(pid);
      await annotate(`${Math.round(most)} MB of resident memory at most; a backend's change: ${took.join(", ")} ms`);
      expect(most).toBeLessThan(MOST_MB);
      expect(Math.max(...took)).toBeLessThan(MOST_MS);
      process.kill(pid, "SIGTERM");
    }
  } finally {
    await api.stop();
  }
});

/** On all CPUs since its start, which is no matter of what else the machine does. */
async function ownMilliseconds(pid: number): Promise<number> {
  const [nanoseconds = ""] = (await readFile(`/proc/${pid}/schedstat`, "utf8")).split(" ");
  return Math.round(Number(nanoseconds) / 1e6);
}
