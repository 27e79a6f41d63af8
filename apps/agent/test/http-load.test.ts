import { connect, type Socket } from "node:net";
import { settled, VirtualClock } from "@fairlead/base/testing";
import { service } from "@fairlead/testkit";
import { afterEach, describe, expect, test } from "vitest";
import { Admission } from "../src/http/admission.ts";
import { PLAIN_TEXT } from "../src/http/answers.ts";
import { type App, routes } from "../src/http/app.ts";
import { type Listener, listen, listenForMany } from "../src/http/listen.ts";
import { metricsApp } from "../src/http/metrics-app.ts";
import { reused } from "../src/http/reused.ts";
import { Turns } from "../src/http/turns.ts";
import { sliMetrics } from "../src/metrics/sli-metrics.ts";
import { ask } from "./support/ask.ts";
import { freePort } from "./support/free-port.ts";
import { runningAgent } from "./support/running-agent.ts";
import { until } from "./support/until.ts";

const HOST = "127.0.0.1";
const get = (path: string, requests = 1) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(requests);

const LISTENERS: Listener[] = [];
const clients = new Set<Socket>();

async function serve(app: App, admission?: Admission): Promise<number> {
  const listener = await listen(app, { host: HOST, port: 0 }, false, admission);
  LISTENERS.push(listener);
  return listener.address.port;
}

/** A connection that sends `text`, and what came back. */
function client(port: number, text: string) {
  const socket = connect(port, HOST);
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

/** An app that counts its answers, in all and the most in one turn of the event loop. */
function counting() {
  const counts = { all: 0, mostInATurn: 0 };
  const app = routes({
    "/healthz": () => {
      counts.all++;
      return { status: 200, headers: PLAIN_TEXT, body: "ok" };
    },
  });
  let milliseconds = 0;
  const turns = new Turns({
    nextTurn: (run) =>
      setImmediate(() => {
        const before = counts.all;
        run();
        counts.mostInATurn = Math.max(counts.mostInATurn, counts.all - before);
      }),
    // A piece takes one.
    now: () => milliseconds++,
  });
  return { app, counts, admission: new Admission(turns) };
}

const at = { host: HOST, port: 0 };
const forMany = (app: App, admission: Admission) => listenForMany(app, at, admission);

/** That many of the shortest requests are in two pieces. */
const FEW_IN_A_TURN = 40;

const answers = (text: string) => text.split("HTTP/1.1 200").length - 1;

afterEach(async () => {
  for (const socket of clients) socket.destroy();
  clients.clear();
  await Promise.all(LISTENERS.splice(0).map((listener) => listener.close()));
});

describe("clients that ask too much", () => {
  test("thousands of pipelined requests are answered, some in each turn of the event loop", async () => {
    const { app, counts, admission } = counting();
    const port = await serve(app, admission);
    const one = client(port, get("/healthz", 2_000));
    await until(() => answers(one.received) === 2_000);
    expect(counts.mostInATurn).toBeGreaterThan(0);
    expect(counts.mostInATurn).toBeLessThanOrEqual(FEW_IN_A_TURN);
  });

  test("a probe is answered before the requests of fifty connections that have had answers", async () => {
    const { app, counts, admission } = counting();
    let before = 0;
    const probed: App = (path) => {
      if (path === "/livez") before = counts.all;
      return app("/healthz");
    };
    const port = await serve(probed, admission);
    const greedy = Array.from({ length: 50 }, () => client(port, get("/healthz")));
    await until(() => greedy.every(({ received }) => answers(received) > 0));
    for (const { socket } of greedy) socket.write(get("/healthz", 2_000));
    const probe = client(port, get("/livez"));
    await until(() => answers(probe.received) === 1);
    expect(before).toBeLessThan(1_000);
  });

  test("the servers of a process take turns with one another", async () => {
    const { app, counts, admission } = counting();
    const ports = await Promise.all(Array.from({ length: 10 }, () => serve(app, admission)));
    const greedy = ports.map((port) => client(port, get("/healthz", 500)));
    await until(() => greedy.every(({ received }) => answers(received) === 500));
    expect(counts.mostInATurn).toBeGreaterThan(0);
    expect(counts.mostInATurn).toBeLessThanOrEqual(FEW_IN_A_TURN);
  });

  test("what a client asked for is not done any more when it is gone", async () => {
    const { app, counts } = counting();
    const port = await serve(app);
    const one = client(port, get("/healthz", 2_000));
    await until(() => counts.all > 0);
    one.socket.destroy();
    await until(() => one.closed);
    await settled();
    const then = counts.all;
    await settled();
    expect(counts.all).toBe(then);
    expect(then).toBeLessThan(1_000);
  });

  test("connections that are only held are cut for new ones, the one first that was silent longest", async () => {
    const { app } = counting();
    const port = await serve(app);
    const held: ReturnType<typeof client>[] = [];
    for (let i = 0; i < 1_024; i++) {
      held.push(client(port, "GET /"));
      if (i % 32 === 0) await settled();
    }
    const probe = client(port, get("/healthz"));
    await until(() => answers(probe.received) === 1 && held[0]?.closed === true);
    expect(held.filter(({ closed }) => closed)).toHaveLength(1);
  });

  test.each([1, 32])("of 640 connections that are opened at once, %i is let in in each turn", async (inATurn) => {
    const { app } = counting();
    const admission = new Admission(new Turns({ nextTurn: setImmediate, now: () => 0 }));
    const serveIt = inATurn === 1 ? (one: App, two: Admission) => listen(one, at, false, two) : forMany;
    const listener = await serveIt(app, admission);
    LISTENERS.push(listener);
    const held = Array.from({ length: 640 }, () => client(listener.address.port, "GET /"));
    const probe = client(listener.address.port, get("/healthz"));
    let turns = 0;
    for (; answers(probe.received) === 0; turns++) await new Promise(setImmediate);
    expect(held).toHaveLength(640);
    if (inATurn === 1) expect(turns).toBeGreaterThan(600);
    else expect(turns).toBeLessThan(100);
  });

  test("metrics and ownership are made once a second, however many ask", async () => {
    const clock = new VirtualClock();
    const made = { metrics: 0, ownership: 0 };
    const app = metricsApp(
      {
        metrics: async () => ({ text: `scrapes ${++made.metrics}\n`, contentType: "text/plain" }),
        ownership: () => ({ read: ++made.ownership }),
        proxyMode: () => "iptables",
        configuration: () => ({}),
        slis: sliMetrics(0),
      },
      clock,
    );
    const port = await serve(app);
    const one = client(port, get("/metrics", 500) + get("/ownership", 500));
    await until(() => answers(one.received) === 1_000);
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

  test("requests and answers of any size get through in pieces, and what is no request is told so", async () => {
    const big = "x".repeat(3_000_000);
    const port = await serve(routes({ "/big": () => ({ status: 200, headers: PLAIN_TEXT, body: Buffer.from(big) }) }));
    const answer = await fetch(`http://${HOST}:${port}/big`, {
      method: "POST",
      body: "y".repeat(100_000),
      headers: { "x-long": "z".repeat(8_000) },
    });
    expect(await answer.text()).toBe(big);
    const strange = client(port, "what is this\r\n\r\n");
    await until(() => strange.closed);
    expect(strange.received).toMatch(/^HTTP\/1.1 400 /);
  });

  test("a Service's health-check port and the metrics port of an agent have one bound", async () => {
    const [checkPort, metricsPort] = [await freePort(), await freePort()];
    const one = runningAgent({ metricsPort });
    const web = service("web", {
      type: "LoadBalancer",
      clusterIPs: ["10.96.67.75"],
      ports: [{ port: 80 }],
      externalTrafficPolicy: "Local",
      healthCheckNodePort: checkPort,
    });
    await settled();
    await one.source.put(web);
    await one.source.synced("services", "endpointSlices", "node");
    await until(() => one.log.messages("verbose").includes("Health-check node port opened"), one.clock);
    const held = Array.from({ length: 1_024 }, () => client(checkPort, "GET /"));
    await until(() => held.every(({ socket }) => !socket.connecting));
    const scrape = client(metricsPort, get("/metrics"));
    await until(() => answers(scrape.received) === 1 && held.some(({ closed }) => closed));
    for (const { socket } of [...held, scrape]) socket.destroy();
    await one.stop();
  });
});
