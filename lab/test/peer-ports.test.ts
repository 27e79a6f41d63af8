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

/** Servers that answer as a peer does, at a port of 127.0.0.1. @returns the port */
const LISTEN = {
  TCP: async (stack: AsyncDisposableStack, port: number) => {
    const server = createServer((_, response) => response.end(`${ANSWER}\n`)).listen(port, "127.0.0.1");
    await once(server, "listening");
    stack.defer(() => void server.close());
    return (server.address() as AddressInfo).port;
  },
  UDP: async (stack: AsyncDisposableStack, port: number) => {
    const socket = createSocket("udp4");
    socket.on("message", (_, from) => socket.send(ANSWER, from.port, from.address));
    socket.bind(port, "127.0.0.1");
    await once(socket, "listening");
    stack.defer(() => void socket.close());
    return socket.address().port;
  },
} as const;

const ANSWER = JSON.stringify({ server: "one" });

test.each(["TCP", "UDP"] as const)(
  "%s: a port that another socket has is passed over, and no request fails",
  async (protocol) => {
    await using stack = new AsyncDisposableStack();
    const listen = LISTEN[protocol];
    const port = await listen(stack, 0);
    const source = protocol === "UDP" ? { source: "127.0.0.1" } : {};
    const probe = { protocol, to: "127.0.0.1", port, ...source, count: 1, parallel: 1, timeoutMs: 60_000 } as const;
    const sent = async () => {
      const [result] = await send(probe);
      expect(result).toMatchObject({ kind: "answer", server: "one" });
      return Number((result as { sender: string }).sender.split(":")[1]);
    };
    const used = await sent();
    await listen(stack, used + 1);
    expect(await sent()).toBe(used + 2);
  },
);

test("a datagram that is no answer fails its request, and not the peer", async () => {
  await using stack = new AsyncDisposableStack();
  const socket = createSocket("udp4");
  socket.on("message", (_, from) => socket.send("wh\u0000$", from.port, from.address));
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  stack.defer(() => void socket.close());
  const { port } = socket.address();
  const [result] = await send({ protocol: "UDP", to: "127.0.0.1", port, count: 1, parallel: 1, timeoutMs: 60_000 });
  expect(result).toMatchObject({ kind: "error", code: 'no answer: "wh\\u0000$"' });
});
