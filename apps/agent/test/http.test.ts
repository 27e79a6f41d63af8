import { Server } from "node:net";
import { until, VirtualClock } from "@fairlead/base/testing";
import { describe, expect, test, vi } from "vitest";
import { serviceHealthApp } from "../src/health/service-app.ts";
import { PLAIN_TEXT } from "../src/http/answers.ts";
import { routes } from "../src/http/app.ts";
import { bind } from "../src/http/bind.ts";
import { ConnectionLimit } from "../src/http/connection-limit.ts";
import { listen } from "../src/http/listen.ts";
import { recordedLog } from "./support/recorded-log.ts";

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
  test("a port in use is told and tried again until it is free", async ({ signal }) => {
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
