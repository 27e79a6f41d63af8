import { createServer, type RequestListener } from "node:http";
import { text } from "node:stream/consumers";
import { LightApiServer } from "@fairlead/testkit/api-server";
import { expectReadmeExample } from "@fairlead/tooling/readme";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Turns } from "../src/api/request.ts";
import { isAllowed, postObject, type RequestObserver, requestObject } from "../src/index.ts";
import {
  CIDRS_PATH,
  endAfterEach,
  following,
  listening,
  NODES_PATH,
  SERVICES_PATH,
  serverTls,
  service,
} from "./support/fake-api.ts";
import { type SpecServer, serverSpecs } from "./support/server-specs.ts";

endAfterEach();

async function connectedTo(answer: RequestListener, headers: Readonly<Record<string, string>> = {}) {
  const port = await listening(createServer(answer));
  return { server: `http://127.0.0.1:${port}`, credentials: async () => ({ headers, tls: {} }) };
}

const never = new AbortController().signal;

test("the first has the turn at once, the others in the order of their asking", async () => {
  const turns = new Turns();
  const [a, b, c] = [{}, {}, {}];
  expect([turns.claim(a), turns.claim(a), turns.claim(b)]).toEqual([true, true, false]);
  const order: string[] = [];
  const waiting = [turns.take(b, never).then(() => order.push("b")), turns.take(c, never).then(() => order.push("c"))];
  // Not b's to pass.
  turns.pass(b);
  await Promise.resolve();
  expect(order).toEqual([]);
  turns.pass(a);
  await waiting[0];
  expect(order).toEqual(["b"]);
  turns.pass(b);
  await waiting[1];
  turns.pass(c);
  expect(turns.claim(a)).toBe(true);
});

test("one that stops waiting is passed over", async () => {
  const turns = new Turns();
  const [a, b, c] = [{}, {}, {}];
  await turns.take(a, never);
  const stop = new AbortController();
  const left = turns.take(b, stop.signal);
  const waits = turns.take(c, never);
  stop.abort();
  await left;
  turns.pass(a);
  await waits;
  expect([turns.claim(b), turns.claim(c)]).toEqual([false, true]);
});

test("what has ended already does not wait", async () => {
  const turns = new Turns();
  const late = {};
  await turns.take({}, never);
  await turns.take(late, AbortSignal.abort());
  expect(turns.claim(late)).toBe(false);
});

test("requests are reported with method, host and status code, and how long each waited for its turn", async () => {
  const answered: string[] = [];
  let waited = 0;
  const onRequest: RequestObserver = {
    answered({ method, host, code, watch }) {
      expect(host).toMatch(/^127\.0\.0\.1:\d+$/);
      answered.push(`${method} ${code} ${watch ? "watch" : "list"}`);
    },
    waited: () => waited++,
  };
  const prepare = (fake: LightApiServer) => {
    fake.watchList = false;
    fake.store.put(SERVICES_PATH, service("a"));
  };
  await following(prepare, { onRequest });
  // The watch that follows may not have its answer yet.
  expect(answered.slice(0, 2)).toEqual(["GET 422 watch", "GET 200 list"]);
  expect(waited).toBeGreaterThanOrEqual(2);
});

test("a request without an answer has no code", async () => {
  const codes: (number | undefined)[] = [];
  const onRequest: RequestObserver = { answered: ({ code }) => codes.push(code), waited: () => {} };
  await following(
    (fake) => {
      let first = true;
      fake.intercept((_request, response) => {
        if (!first) return false;
        first = false;
        response.destroy();
        return true;
      });
    },
    { onRequest },
  );
  expect(codes[0]).toBeUndefined();
  expect(codes).toContain(200);
});

test("posts an object and gives the status", async () => {
  const seen: unknown[] = [];
  const answer: RequestListener = async (request, response) => {
    seen.push([request.method, request.url, request.headers.authorization, JSON.parse(await text(request))]);
    response.writeHead(403).end("{}");
  };
  const connection = await connectedTo(answer, { authorization: "Bearer t" });
  const path = "/api/v1/namespaces/default/events";
  expect(await postObject(connection, path, { kind: "Event" }, "fairlead-proxy/0")).toBe(403);
  // Over plain HTTP without the token.
  expect(seen).toEqual([["POST", path, undefined, { kind: "Event" }]]);
  // Nothing listens on port 1 (tcpmux).
  await expect(postObject({ ...connection, server: "http://127.0.0.1:1" }, path, {}, "x")).rejects.toThrow(
    "ECONNREFUSED",
  );
});

test("an answer that is longer than what is taken is an error, and what is taken is given whole", async () => {
  const connection = await connectedTo((_request, response) => response.end("x".repeat(100)));
  const ask = (mostBytes?: number) =>
    requestObject(connection, { method: "GET", path: "/x", ...(mostBytes !== undefined && { mostBytes }) }, "x");
  expect((await ask()).body).toHaveLength(100);
  expect((await ask(100)).body).toHaveLength(100);
  await expect(ask(99)).rejects.toThrow("the answer to GET /x is longer than 99 bytes");
});

test("asks what the connection's account may do", async () => {
  const connection = await connectedTo(async (request, response) => {
    const { spec } = JSON.parse(await text(request));
    const { verb, resource } = spec.resourceAttributes;
    if (resource === "secrets") response.writeHead(404).end("not found");
    else response.writeHead(201).end(JSON.stringify({ status: { allowed: verb === "list" } }));
  });
  expect(await isAllowed(connection, { verb: "list", group: "", resource: "services" }, "x")).toBe(true);
  expect(await isAllowed(connection, { verb: "watch", group: "", resource: "services" }, "x")).toBe(false);
  await expect(isAllowed(connection, { verb: "list", group: "", resource: "secrets" }, "x")).rejects.toThrow(
    "answered 404",
  );
});

describe.each([false, true])("the light API server, protobuf: %s", (protobuf) => {
  let light: LightApiServer;
  let server: SpecServer;

  beforeAll(async () => {
    light = new LightApiServer(await serverTls());
    light.token = "light";
    light.store.put(SERVICES_PATH, { metadata: { name: "kubernetes", namespace: "default" }, spec: {} });
    light.store.put(CIDRS_PATH, { metadata: { name: "kubernetes" }, spec: { cidrs: ["10.96.0.0/12"] } });
    light.store.put(NODES_PATH, { metadata: { name: "node-a" } });
    server = { url: await light.start(), token: "light" };
  });

  afterAll(() => light.stop());

  serverSpecs(() => server, "light", protobuf);
});

test("README example", () => expectReadmeExample(import.meta.dirname));
