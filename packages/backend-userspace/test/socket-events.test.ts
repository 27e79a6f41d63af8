import { Socket as DatagramSocket } from "node:dgram";
import { EventEmitter, once } from "node:events";
import { Server } from "node:net";
import { afterEach, expect, test, vi } from "vitest";
import { relayed } from "./support/relayed.ts";
import { Opened } from "./support/servers.ts";

/** What an event of a socket may carry, without anything that ends the process. */
afterEach(() => void vi.restoreAllMocks());

/** Has an event come from the socket that was made to listen last. */
function emitter() {
  const [listens, binds] = [vi.spyOn(Server.prototype, "listen"), vi.spyOn(DatagramSocket.prototype, "bind")];
  return (event: string, ...args: readonly unknown[]) => {
    const socket: unknown = [...listens.mock.contexts, ...binds.mock.contexts].at(-1);
    if (socket instanceof EventEmitter) socket.emit(event, ...args);
  };
}

test.each(["TCP", "UDP"] as const)(
  "%s: errors of the listening socket are told, and it serves on",
  async (protocol) => {
    await using opened = new Opened();
    const emit = emitter();
    const problems: string[] = [];
    await relayed(opened, protocol, [], { onProblem: (problem) => void problems.push(problem) });
    for (let count = 0; count < 2; count++) emit("error", new Error("accept ENOBUFS"));
    expect(problems).toEqual(Array(2).fill(expect.stringMatching(/^default\/web: failed to .*accept ENOBUFS$/)));
  },
);

test("a port that is taken is the caller's to tell, and nobody else's", async () => {
  await using opened = new Opened();
  const problems: string[] = [];
  for (const protocol of ["TCP", "UDP"] as const) {
    const { relay } = await relayed(opened, protocol, []);
    const options = { port: relay.port, onProblem: (problem: string) => void problems.push(problem) };
    await expect(relayed(opened, protocol, [], options)).rejects.toMatchObject({ code: "EADDRINUSE" });
  }
  expect(problems).toEqual([]);
});

test("a datagram from port 0 is relayed, and its answer has nowhere to go", async () => {
  await using opened = new Opened();
  const answered = Promise.withResolvers<void>();
  const server = await opened.udp((data) => {
    answered.resolve();
    return data;
  });
  const emit = emitter();
  const { relay, traffic } = await relayed(opened, "UDP", [server], { udpIdleTimeout: 60_000 });
  const info = { address: "127.0.0.1", port: 0, family: "IPv4", size: 1 } as const;
  emit("message", Buffer.from("?"), info);
  await answered.promise;
  // Answers come in order: that of another client, asked after it, is there when the first one's has been seen.
  const client = await opened.datagrams();
  client.send("!", relay.port, "127.0.0.1");
  await once(client, "message");
  expect(traffic.counts).toMatchObject({ accepted: { UDP: 2 }, bytes: { "to-endpoint": 2, "to-client": 1 } });
});
