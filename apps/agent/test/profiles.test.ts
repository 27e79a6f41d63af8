import { VirtualClock } from "@fairlead/base/testing";
import { expect, test } from "vitest";
import { routes } from "../src/http/app.ts";
import { metricsApp } from "../src/http/metrics-app.ts";
import { nodeProfiles, profileRoutes } from "../src/http/profiles.ts";
import { sliMetrics } from "../src/metrics/sli-metrics.ts";
import { ask } from "./support/ask.ts";

const sources = {
  metrics: async () => ({ text: "", contentType: "text/plain" }),
  proxyMode: () => "iptables",
  configuration: () => ({}),
  ownership: () => ({}),
  slis: sliMetrics(0),
};

test("without enableProfiling there is nothing", async () => {
  const app = metricsApp(sources, new VirtualClock());
  for (const path of ["/debug/pprof/", "/debug/pprof/profile", "/debug/pprof/heap"]) {
    expect((await ask(app, path)).status).toBe(404);
  }
});

test("a CPU profile and an allocation profile of this process", async () => {
  const app = metricsApp({ ...sources, profiles: nodeProfiles() }, new VirtualClock());
  const cpu = await ask(app, "/debug/pprof/profile?seconds=0.05");
  expect(cpu.headers.get("Content-Disposition")).toContain(".cpuprofile");
  expect(await cpu.json()).toHaveProperty("nodes");
  const kept = Array.from({ length: 100_000 }, (_, i) => ({ [`a${i % 10}`]: i }));
  const heap = await ask(app, "/debug/pprof/heap");
  expect(heap.headers.get("Content-Disposition")).toContain(".heapprofile");
  const { head, samples } = JSON.parse(await heap.text());
  expect(head).toHaveProperty("callFrame.functionName", "(root)");
  expect(samples.length).toBeGreaterThan(0);
  expect(kept).toHaveLength(100_000);
});

test("one CPU profile at a time, of a length that makes sense", async () => {
  const asked = Promise.withResolvers<string>();
  const app = routes(profileRoutes({ cpu: () => asked.promise, heap: async () => "{}" }));
  for (const seconds of ["0", "-1", "soon", "301"]) {
    expect((await ask(app, `/debug/pprof/profile?seconds=${seconds}`)).status).toBe(400);
  }
  const first = ask(app, "/debug/pprof/profile?seconds=1");
  expect((await ask(app, "/debug/pprof/profile")).status).toBe(409);
  asked.resolve("{}");
  expect((await first).status).toBe(200);
  expect((await ask(app, "/debug/pprof/profile")).status).toBe(200);
});

test("a CPU profile ends when nobody waits for it any more, and another can be taken", async () => {
  const app = routes(profileRoutes(nodeProfiles()));
  const gone = new AbortController();
  const first = ask(app, "/debug/pprof/profile?seconds=300", { gone: gone.signal });
  gone.abort();
  expect((await first).status).toBe(200);
  expect((await ask(app, "/debug/pprof/profile?seconds=0.01")).status).toBe(200);
});
