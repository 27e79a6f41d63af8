import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { isAllowed, postObject, requestObject } from "../src/index.ts";
import { endAfterEach, later } from "./support/run.ts";

endAfterEach();

test("posts an object and gives the status", async () => {
  const seen: unknown[] = [];
  const server = createServer(async (request, response) => {
    seen.push([request.method, request.url, request.headers.authorization, JSON.parse(await text(request))]);
    response.writeHead(403).end("{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  later(async () => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const connection = { server: url, credentials: async () => ({ headers: { authorization: "Bearer t" }, tls: {} }) };
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
  const server = createServer((_request, response) => response.end("x".repeat(100)));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  later(async () => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const connection = { server: url, credentials: async () => ({ headers: {}, tls: {} }) };
  const ask = (mostBytes?: number) =>
    requestObject(connection, { method: "GET", path: "/x", ...(mostBytes !== undefined && { mostBytes }) }, "x");
  expect((await ask()).body).toHaveLength(100);
  expect((await ask(100)).body).toHaveLength(100);
  await expect(ask(99)).rejects.toThrow("the answer to GET /x is longer than 99 bytes");
});

test("asks what the connection's account may do", async () => {
  const server = createServer(async (request, response) => {
    const { spec } = JSON.parse(await text(request));
    const { verb, resource } = spec.resourceAttributes;
    if (resource === "secrets") response.writeHead(404).end("not found");
    else response.writeHead(201).end(JSON.stringify({ status: { allowed: verb === "list" } }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  later(async () => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const connection = { server: url, credentials: async () => ({ headers: {}, tls: {} }) };
  expect(await isAllowed(connection, { verb: "list", group: "", resource: "services" }, "x")).toBe(true);
  expect(await isAllowed(connection, { verb: "watch", group: "", resource: "services" }, "x")).toBe(false);
  await expect(isAllowed(connection, { verb: "list", group: "", resource: "secrets" }, "x")).rejects.toThrow(
    "answered 404",
  );
});
