import { createTraffic } from "@fairlead/backend-userspace";
import { VirtualClock } from "@fairlead/base/testing";
import { expect, test } from "vitest";
import { listen } from "../src/http/listen.ts";
import { metricsApp } from "../src/http/metrics-app.ts";
import type { RelayTable } from "../src/http/relays-page.ts";
import { sliMetrics } from "../src/metrics/sli-metrics.ts";
import { ask } from "./support/ask.ts";

function appWith(relays?: RelayTable) {
  const sources = {
    metrics: async () => ({ text: "", contentType: "text/plain" }),
    proxyMode: () => "userspace",
    configuration: () => ({}),
    ownership: () => ({}),
    slis: sliMetrics(0),
  };
  return metricsApp({ ...sources, relays }, new VirtualClock());
}

const RELAY = { address: "10.201.0.10", port: 20_001 };

/** Of as many connections as are asked for. */
function table(count: number): RelayTable {
  const traffic = createTraffic();
  traffic.listening.add({ protocol: "TCP", ...RELAY });
  const nothing = () => {};
  for (let port = 1; port <= count; port++) {
    const client = { address: "10.144.1.9", port };
    const endpoint = { address: "10.144.1.5", port: 8080 };
    traffic.add({
      end: nothing,
      destroy: nothing,
      relayed: () => ({ protocol: "TCP", client, relay: RELAY, endpoint }),
    });
  }
  return traffic;
}

test("relays and their connections, a line each, over the real port too", async () => {
  const listener = await listen(appWith(table(1_000)), { host: "127.0.0.1", port: 0 });
  const answer = await fetch(`http://127.0.0.1:${listener.address.port}/relays`);
  expect([answer.status, answer.headers.get("Content-Type")]).toEqual([200, "application/jsonl"]);
  const lines = (await answer.text()).trim().split("\n");
  await listener.close();
  expect(lines).toHaveLength(1_001);
  expect(lines[0]).toBe('{"listening":{"protocol":"TCP","address":"10.201.0.10","port":20001}}');
  expect(JSON.parse(lines.at(-1) ?? "")).toMatchObject({ connection: { client: { port: 1_000 }, relay: RELAY } });
});

test("nothing where nothing is relayed, and nothing for those elsewhere", async () => {
  const none = await ask(appWith(), "/relays");
  expect([none.status, await none.text()]).toEqual([200, ""]);
  expect((await ask(appWith(table(1)), "/relays", { local: false })).status).toBe(403);
});

test("the event loop has its turns while many connections are told", async () => {
  const answer = await ask(appWith(table(10_000)), "/relays");
  let turns = 0;
  let told = false;
  const text = answer.text().finally(() => {
    told = true;
  });
  while (!told) {
    await new Promise(setImmediate);
    turns += 1;
  }
  expect((await text).split("\n")).toHaveLength(10_002);
  expect(turns).toBeGreaterThan(50);
});
