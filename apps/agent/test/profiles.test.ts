import { Readable } from "node:stream";
import { VirtualClock } from "@fairlead/base/testing";
import { expect, test } from "vitest";
import { routes } from "../src/http/app.ts";
import { listen } from "../src/http/listen.ts";
import { metricsApp } from "../src/http/metrics-app.ts";
import { nodeProfiles, profileRoutes } from "../src/http/profiles.ts";
import { sliMetrics } from "../src/metrics/sli-metrics.ts";
import { ask } from "./support/ask.ts";
import { until } from "./support/until.ts";

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

test("a CPU profile and a heap snapshot of this process", async () => {
  const app = metricsApp({ ...sources, profiles: nodeProfiles }, new VirtualClock());
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

test("a CPU profile ends when nobody waits for it any more, and another can be taken", async () => {
  const app = routes(profileRoutes(nodeProfiles));
  const gone = new AbortController();
  const first = ask(app, "/debug/pprof/profile?seconds=300", { gone: gone.signal });
  gone.abort();
  expect((await first).status).toBe(200);
  expect((await ask(app, "/debug/pprof/profile?seconds=0.01")).status).toBe(200);
});

test("one heap snapshot at a time, until it is read or its reader is gone", async () => {
  const taken: Readable[] = [];
  const heap = () => {
    const snapshot = new Readable({ read() {} });
    taken.push(snapshot);
    return snapshot;
  };
  const app = routes(profileRoutes({ cpu: async () => "{}", heap }));
  const port = await listen(app, { host: "127.0.0.1", port: 0 });
  const url = `http://127.0.0.1:${port.address.port}/debug/pprof/heap`;
  const ten = Array.from({ length: 10 }, () => fetch(url));
  await until(() => taken.length > 0);
  taken[0]?.push("{}");
  const answers = await Promise.all(ten);
  expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array.from({ length: 9 }, () => 409)]);
  expect(taken).toHaveLength(1);
  await answers.find(({ ok }) => ok)?.body?.cancel();
  await until(() => taken[0]?.destroyed === true);
  const next = fetch(url);
  await until(() => taken.length === 2);
  taken[1]?.push("{}");
  taken[1]?.push(null);
  expect(await (await next).text()).toBe("{}");
  await port.close();
});
