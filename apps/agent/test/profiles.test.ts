import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { routes } from "../src/http/app.ts";
import { metricsApp } from "../src/http/metrics-app.ts";
import { nodeProfiles, profileRoutes } from "../src/http/profiles.ts";
import { ask } from "./support/ask.ts";

const sources = {
  metrics: async () => ({ text: "", contentType: "text/plain" }),
  proxyMode: () => "iptables",
  configuration: () => ({}),
  ownership: () => ({}),
};

test("without enableProfiling there is nothing", async () => {
  const app = metricsApp(sources);
  for (const path of ["/debug/pprof/", "/debug/pprof/profile", "/debug/pprof/heap"]) {
    expect((await ask(app, path)).status).toBe(404);
  }
});

test("a CPU profile and a heap snapshot of this process", async () => {
  const app = metricsApp({ ...sources, profiles: nodeProfiles });
  const cpu = await ask(app, "/debug/pprof/profile?seconds=0.05");
  expect(cpu.headers.get("Content-Disposition")).toContain(".cpuprofile");
  expect(await cpu.json()).toHaveProperty("nodes");
  const heap = await ask(app, "/debug/pprof/heap");
  const { done, value } = await (heap.body?.getReader().read() ?? { done: true, value: undefined });
  expect(done).toBe(false);
  expect(String(new TextDecoder().decode(value))).toMatch(/^\{"snapshot"/);
});

test("one CPU profile at a time, of a length that makes sense", async () => {
  const asked = Promise.withResolvers<string>();
  const app = routes(profileRoutes({ cpu: () => asked.promise, heap: () => Readable.from([]) }));
  for (const seconds of ["0", "-1", "soon", "301"]) {
    expect((await ask(app, `/debug/pprof/profile?seconds=${seconds}`)).status).toBe(400);
  }
  const first = ask(app, "/debug/pprof/profile?seconds=1");
  expect((await ask(app, "/debug/pprof/profile")).status).toBe(409);
  asked.resolve("{}");
  expect((await first).status).toBe(200);
  expect((await ask(app, "/debug/pprof/profile")).status).toBe(200);
});
