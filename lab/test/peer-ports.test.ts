import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { firstPort, send } from "../src/peer/requests.ts";

test("peers of one namespace begin at different ports, within the range", () => {
  const firsts = [100, 101, 102, 40_000].map((seed) => firstPort([11_000, 29_999], seed));
  expect(new Set(firsts).size).toBe(4);
  for (const port of firsts) expect(port).toBeGreaterThanOrEqual(11_000);
  for (const port of firsts) expect(port).toBeLessThanOrEqual(29_999);
});

test("a port that another socket has is passed over, and no request fails", async () => {
  await using stack = new AsyncDisposableStack();
  const answer = JSON.stringify({ server: "one" });
  const listen = async (port: number) => {
    const server = createServer((_, response) => response.end(`${answer}\n`)).listen(port, "127.0.0.1");
    await once(server, "listening");
    stack.defer(() => void server.close());
    return server;
  };
  const { port } = (await listen(0)).address() as AddressInfo;
  const probe = { protocol: "TCP", to: "127.0.0.1", port, count: 1, parallel: 1, timeoutMs: 60_000 } as const;
  const sent = async () => {
    const [result] = await send(probe);
    expect(result).toMatchObject({ kind: "answer", server: "one" });
    return Number((result as { sender: string }).sender.split(":")[1]);
  };
  const used = await sent();
  await listen(used + 1);
  expect(await sent()).toBe(used + 2);
});

test("UDP: likewise", async () => {
  await using stack = new AsyncDisposableStack();
  const bind = async (port: number) => {
    const socket = createSocket("udp4");
    socket.on("message", (_, from) => socket.send(JSON.stringify({ server: "one" }), from.port, from.address));
    socket.bind(port, "127.0.0.1");
    await once(socket, "listening");
    stack.defer(() => void socket.close());
    return socket;
  };
  const { port } = (await bind(0)).address();
  const probe = {
    protocol: "UDP",
    to: "127.0.0.1",
    port,
    source: "127.0.0.1",
    count: 1,
    parallel: 1,
    timeoutMs: 60_000,
  } as const;
  const sent = async () => {
    const [result] = await send(probe);
    expect(result).toMatchObject({ kind: "answer", server: "one" });
    return Number((result as { sender: string }).sender.split(":")[1]);
  };
  const used = await sent();
  await bind(used + 1);
  expect(await sent()).toBe(used + 2);
});
