import { connect, Server, type Socket } from "node:net";
import { settled, until, VirtualClock } from "@fairlead/base/testing";
import { LightApiServer } from "@fairlead/testkit/api-server";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type App, PLAIN_TEXT, routes } from "../src/http/app.ts";
import { bind, ConnectionLimit, type Listener, listen } from "../src/http/listen.ts";
import { metricsApp, reused } from "../src/http/metrics-app.ts";
import { serviceHealthApp } from "../src/service-health.ts";
import { openSource } from "../src/start/source.ts";
import { configOf, recordedLog } from "./support/fake-node.ts";
import { ask, freePort, nothingMeasured } from "./support/http.ts";
import { healthChecked, runningAgent } from "./support/running-agent.ts";

const app = routes({ "/": () => ({ status: 200, headers: PLAIN_TEXT, body: "here" }) });
const LOOPBACK = "127.0.0.1";

function options(port: number, hardFail = false) {
  const clock = new VirtualClock();
  const log = recordedLog();
  const stop = new AbortController();
  const failed: string[] = [];
  const at = { address: LOOPBACK, port };
  const onFailure = (_server: string, reason: string) => failed.push(reason);
  return {
    clock,
    log,
    stop,
    failed,
    bind: {
      name: "health",
      at,
      hardFail,
      clock,
      log,
      signal: stop.signal,
      limit: new ConnectionLimit(),
      onFailure,
    } as const,
  };
}

test("a handler that throws is answered with 500, an unknown path with 404", async () => {
  const broken = () => {
    throw new Error("broken");
  };
  const listener = await listen(routes({ "/broken": broken }), { host: LOOPBACK, port: 0 });
  const statusOf = async (path: string) => (await fetch(`http://${LOOPBACK}:${listener.address.port}${path}`)).status;
  expect(await statusOf("/broken?query")).toBe(500);
  expect(await statusOf("/elsewhere")).toBe(404);
  await listener.close();
});

test.each([
  ["text", "h\u00f6r"],
  ["bytes", Buffer.from("h\u00f6r")],
  ["a service's health", undefined],
])("an answer that is there has its length and is not sent in chunks: %s", async (_what, body) => {
  const check = { service: "default/web", namespace: "default", name: "web", port: 30_000, localEndpoints: 0 } as const;
  const health = serviceHealthApp(
    () => check,
    () => true,
  );
  const fixed = routes({ "/": () => ({ status: 200, headers: PLAIN_TEXT, body: body ?? "" }) });
  const listener = await listen(body === undefined ? health : fixed, { host: LOOPBACK, port: 0 });
  const answer = await fetch(`http://${LOOPBACK}:${listener.address.port}/`);
  expect(answer.headers.get("Transfer-Encoding")).toBe(null);
  expect(answer.headers.get("Content-Length")).toBe(String((await answer.arrayBuffer()).byteLength));
  await listener.close();
});

test("connections that cannot be accepted don't end the process", async () => {
  const opening = vi.spyOn(Server.prototype, "listen");
  const listener = await listen(app, { host: LOOPBACK, port: 0 });
  const server: unknown = opening.mock.contexts[0];
  opening.mockRestore();
  if (!(server instanceof Server)) throw new Error("nothing listens");
  for (let count = 0; count < 2; count++) server.emit("error", new Error("accept ENOBUFS"));
  expect((await fetch(`http://${LOOPBACK}:${listener.address.port}/`)).status).toBe(200);
  await listener.close();
});

describe("serving on an own address", () => {
  test("a port in use is reported and tried again until it is free", async ({ signal }) => {
    const other = await listen(app, { host: LOOPBACK, port: 0 });
    const { clock, log, bind: bound } = options(other.address.port);
    const opening = bind(app, bound);
    await until(signal, () => clock.pending.length === 1);
    expect(log.lines).toMatchObject([{ level: "error", fields: { server: "health" } }]);
    await other.close();
    await clock.advance(5_000);
    const listener = await opening;
    const answer = await fetch(`http://${LOOPBACK}:${other.address.port}/`);
    expect(await answer.text()).toBe("here");
    await listener?.close();
  });

  test("with bindAddressHardFail the first failure ends it", async () => {
    const other = await listen(app, { host: LOOPBACK, port: 0 });
    const { failed, bind: bound } = options(other.address.port, true);
    expect(await bind(app, bound)).toBeUndefined();
    expect(failed[0]).toMatch(/^the health server cannot listen on 127\.0\.0\.1:\d+: .*EADDRINUSE/);
    await other.close();
  });

  test("waiting ends with the agent", async ({ signal }) => {
    const other = await listen(app, { host: LOOPBACK, port: 0 });
    const { clock, stop, bind: bound } = options(other.address.port);
    const opening = bind(app, bound);
    await until(signal, () => clock.pending.length === 1);
    stop.abort();
    expect(await opening).toBeUndefined();
    await other.close();
  });
});

describe("http load", () => {
  const get = (path: string, requests = 1) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(requests);

  const LISTENERS: Listener[] = [];
  const clients = new Set<Socket>();

  async function serve(app: App, limit?: ConnectionLimit): Promise<number> {
    const listener = await listen(app, { host: LOOPBACK, port: 0 }, false, limit);
    LISTENERS.push(listener);
    return listener.address.port;
  }

  /** A connection that sends `text`, and what came back. */
  function client(port: number, text: string) {
    const socket = connect(port, LOOPBACK);
    const state = { socket, received: "", closed: false };
    clients.add(socket);
    socket.setEncoding("utf8");
    socket.on("data", (piece: string) => {
      state.received += piece;
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      state.closed = true;
    });
    socket.write(text);
    return state;
  }

  /** An app that counts its answers, which come at once. */
  function counting() {
    const counts = { all: 0 };
    const app = routes({
      "/healthz": () => {
        counts.all++;
        return { status: 200, headers: PLAIN_TEXT, body: "ok" };
      },
    });
    return { app, counts };
  }

  const answers = (text: string) => text.split("HTTP/1.1 200").length - 1;

  afterEach(async () => {
    for (const socket of clients) socket.destroy();
    clients.clear();
    await Promise.all(LISTENERS.splice(0).map((listener) => listener.close()));
  });

  test("of pipelined requests the first is begun, and its connection is cut", async ({ signal }) => {
    const { app, counts } = counting();
    const port = await serve(app);
    const one = client(port, get("/healthz", 2_000));
    await until(signal, () => one.closed);
    expect(counts.all).toBe(1);
  });

  test("what a client sends is parsed a piece in a turn of the event loop", async ({ signal }) => {
    let turns = 0;
    const seen: number[] = [];
    const app: App = () => () => {
      seen.push(turns);
      return { status: 200, headers: PLAIN_TEXT, body: "ok" };
    };
    const port = await serve(app);
    const large = `GET / HTTP/1.1\r\nHost: a\r\nX-Long: ${"x".repeat(8_000)}\r\n\r\n`;
    let counting = true;
    const count = () => {
      turns++;
      if (counting) setImmediate(count);
    };
    count();
    const one = client(port, large);
    const first = turns;
    await until(signal, () => answers(one.received) === 1);
    counting = false;
    expect((seen[0] ?? 0) - first).toBeGreaterThan(8_000 / 512);
  });

  test("one after the other a connection gets a hundred answers, and then has to be made anew", async ({ signal }) => {
    const { app, counts } = counting();
    const port = await serve(app);
    const one = client(port, "");
    for (let i = 1; i <= 100; i++) {
      one.socket.write(get("/healthz"));
      await until(signal, () => answers(one.received) === i);
    }
    await until(signal, () => one.closed);
    expect(counts.all).toBe(100);
    expect(one.received).toContain("Connection: close");
  });

  test("a client that has ended its own side gets its answer", async ({ signal }) => {
    const port = await serve(routes({ "/slow": async () => ({ status: 200, headers: PLAIN_TEXT, body: "late" }) }));
    const one = client(port, "");
    one.socket.end(get("/slow"));
    await until(signal, () => one.closed);
    expect(one.received).toContain("late");
  });

  test("connections that are only held are cut for new ones, the oldest first", async ({ signal }) => {
    const { app } = counting();
    const port = await serve(app, new ConnectionLimit());
    const held: ReturnType<typeof client>[] = [];
    for (let i = 0; i < 1_024; i++) {
      held.push(client(port, "GET /"));
      if (i % 32 === 0) await settled();
    }
    const probe = client(port, get("/healthz"));
    await until(signal, () => answers(probe.received) === 1 && held[0]?.closed === true);
    expect(held.filter(({ closed }) => closed)).toHaveLength(1);
  });

  test("metrics and ownership are made once a second, however many ask", async ({ signal }) => {
    const clock = new VirtualClock();
    const made = { metrics: 0, ownership: 0 };
    const app = metricsApp(
      {
        ...nothingMeasured(),
        metrics: async () => ({ text: `scrapes ${++made.metrics}\n`, contentType: "text/plain" }),
        ownership: () => ({ read: ++made.ownership }),
      },
      clock,
    );
    const port = await serve(app);
    const many = Array.from({ length: 100 }, (_, i) => client(port, get(i % 2 === 0 ? "/metrics" : "/ownership")));
    await until(signal, () => many.every(({ received }) => answers(received) === 1));
    expect(made).toEqual({ metrics: 1, ownership: 1 });
    await clock.advance(1_000);
    expect(await (await ask(app, "/metrics")).text()).toBe("scrapes 2\n");
  });

  test("what failed is not given again", async () => {
    let tries = 0;
    const flaky = reused(new VirtualClock(), 1_000, async () => {
      if (++tries === 1) throw new Error("no");
      return "made";
    });
    await expect(flaky()).rejects.toThrow("no");
    expect(await flaky()).toBe("made");
  });

  test("requests and answers of any size get through in pieces, and what is not a request gets an error", async ({
    signal,
  }) => {
    const big = "x".repeat(3_000_000);
    const port = await serve(routes({ "/big": () => ({ status: 200, headers: PLAIN_TEXT, body: Buffer.from(big) }) }));
    const answer = await fetch(`http://${LOOPBACK}:${port}/big`, {
      method: "POST",
      body: "y".repeat(100_000),
      headers: { "x-long": "z".repeat(8_000) },
    });
    expect(await answer.text()).toBe(big);
    const strange = client(port, "what is this\r\n\r\n");
    await until(signal, () => strange.closed);
    expect(strange.received).toMatch(/^HTTP\/1.1 400 /);
  });

  test("a Service's health-check port and the metrics port of an agent have one bound", async ({ signal }) => {
    const [checkPort, metricsPort] = [await freePort(), await freePort()];
    const one = await runningAgent({ metricsPort });
    await one.list(healthChecked(checkPort));
    await until(signal, () => one.log.messages("verbose").includes("Health-check node port opened"), one.clock);
    const held = Array.from({ length: 1_024 }, () => client(checkPort, "GET /"));
    await until(signal, () => held.every(({ socket }) => !socket.connecting));
    const scrape = client(metricsPort, get("/metrics"));
    await until(signal, () => answers(scrape.received) === 1 && held.some(({ closed }) => closed));
  });
});

describe("encoding", () => {
  const api = new LightApiServer();
  let server: string;

  beforeEach(async () => {
    server = await api.start();
  });
  afterEach(() => api.stop());

  const PROTOBUF = "application/vnd.kubernetes.protobuf, application/json";
  const byFlag = (type: string) => configOf([`--master=${server}`, `--kube-api-content-type=${type}`]);

  test.each([
    ["by default", () => configOf([`--master=${server}`]), PROTOBUF],
    ["where the flag says so", () => byFlag("application/vnd.kubernetes.protobuf"), PROTOBUF],
    ["not where the flag says JSON", () => byFlag("application/json"), "application/json"],
    ["not where acceptContentTypes says JSON", () => accepting("application/json"), "application/json"],
  ])("protobuf is asked for %s", async (_when, config, accept) => {
    const { source } = await openSource(config(), "node-a", recordedLog());
    const stop = new AbortController();
    const services = { decode: () => true, onChange: () => stop.abort() };
    await source(() => {}, { answered: () => {}, waited: () => {} }).run({ services }, stop.signal);
    expect(api.requests.at(-1)?.headers.accept).toBe(accept);
  });

  function accepting(acceptContentTypes: string) {
    const config = configOf([`--master=${server}`]);
    return { ...config, client: { ...config.client, acceptContentTypes } };
  }
});
