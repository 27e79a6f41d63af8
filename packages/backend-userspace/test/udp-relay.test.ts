import { Socket as DatagramSocket } from "node:dgram";
import { EventEmitter, once } from "node:events";
import { Server } from "node:net";
import { VirtualClock } from "@fairlead/base/testing";
import { afterEach, expect, test, vi } from "vitest";
import { Opened, refuser, relayed } from "./support/servers.ts";

async function ask(opened: Opened, port: number, data: string, from?: Awaited<ReturnType<Opened["datagrams"]>>) {
  const socket = from ?? (await opened.datagrams());
  const answer = once(socket, "message");
  socket.send(data, port, "127.0.0.1");
  const [message, { port: sender }] = await answer;
  return { socket, answer: String(message), sender };
}

test("each client has a flow of its own, and answers come from where it asked", async () => {
  await using opened = new Opened();
  const server = await opened.udp((data, from) => `${data} from ${from}`);
  const { relay, traffic } = await relayed(opened, "UDP", [server]);
  const one = await ask(opened, relay.port, "one");
  const two = await ask(opened, relay.port, "two");
  expect([one.sender, two.sender]).toEqual([relay.port, relay.port]);
  const again = await ask(opened, relay.port, "one", one.socket);
  expect(again.answer).toBe(one.answer);
  expect(two.answer.split(" from ")[1]).not.toBe(one.answer.split(" from ")[1]);
  expect(traffic.counts).toMatchObject({ accepted: { UDP: 2 }, sockets: 3 });
});

test("a flow without a packet for the idle time is forgotten; each packet keeps it", async () => {
  await using opened = new Opened();
  const clock = new VirtualClock();
  const server = await opened.udp((data) => data);
  const { relay, traffic } = await relayed(opened, "UDP", [server], { clock, udpIdleTimeout: 250 });
  const { socket } = await ask(opened, relay.port, "first");
  await clock.advance(200);
  await ask(opened, relay.port, "second", socket);
  await clock.advance(200);
  expect(traffic.counts).toMatchObject({ sockets: 2, idled: 0 });
  await clock.advance(50);
  expect(traffic.counts).toMatchObject({ sockets: 1, idled: 1 });
  expect((await ask(opened, relay.port, "third", socket)).answer).toBe("third");
  expect(traffic.counts.accepted.UDP).toBe(2);
});

test("an endpoint that refuses is passed over, and nothing is lost", async () => {
  await using opened = new Opened();
  const endpoints = [refuser(), await opened.udp((data) => data), refuser()];
  const { relay, traffic } = await relayed(opened, "UDP", endpoints);
  for (let request = 0; request < 9; request++) {
    expect((await ask(opened, relay.port, `request ${request}`)).answer).toBe(`request ${request}`);
  }
  expect(traffic.counts.passedOver).toBeGreaterThan(0);
  expect(traffic.counts.refused.unreachable).toBe(0);
});

test("flows to an endpoint that is gone end, and the client goes on with another", async () => {
  await using opened = new Opened();
  const [a, b] = [await opened.udp(() => "a"), await opened.udp(() => "b")];
  const { relay, serve, traffic } = await relayed(opened, "UDP", [a]);
  const { socket, answer } = await ask(opened, relay.port, "?");
  expect(answer).toBe("a");
  serve([a, b]);
  expect(traffic.counts.sockets).toBe(2);
  serve([b]);
  expect(traffic.counts.sockets).toBe(1);
  expect((await ask(opened, relay.port, "?", socket)).answer).toBe("b");
});

test("a client stays with its endpoint where the service asks for that, over flows", async () => {
  await using opened = new Opened();
  const clock = new VirtualClock();
  const endpoints = [await opened.udp(() => "a"), await opened.udp(() => "b")];
  const { relay } = await relayed(opened, "UDP", endpoints, { clock, affinitySeconds: 60, udpIdleTimeout: 250 });
  const answers = [];
  for (let request = 0; request < 4; request++) {
    answers.push((await ask(opened, relay.port, "?")).answer);
    await clock.advance(1_000);
  }
  expect(new Set(answers).size).toBe(1);
});

test("the bound: a client beyond it gets no flow", async () => {
  await using opened = new Opened();
  const server = await opened.udp((data) => data);
  const { relay, traffic } = await relayed(opened, "UDP", [server], {
    maxSocketsPerService: 2,
  });
  const first = await ask(opened, relay.port, "first");
  const beyond = await opened.datagrams();
  beyond.send("beyond", relay.port, "127.0.0.1");
  // The relay reads in order: when the second of these is answered, the one before it has been seen.
  await ask(opened, relay.port, "again", first.socket);
  await ask(opened, relay.port, "and again", first.socket);
  expect(traffic.counts).toMatchObject({ accepted: { UDP: 1 }, refused: { "service-limit": 1 } });
});

test("closing ends all flows", async () => {
  await using opened = new Opened();
  const server = await opened.udp((data) => data);
  const { relay, traffic } = await relayed(opened, "UDP", [server]);
  await ask(opened, relay.port, "first");
  relay.close();
  expect(traffic.idle).toBe(true);
  expect(traffic.counts.sockets).toBe(0);
});

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
  "%s: errors of the listening socket are reported, and it serves on",
  async (protocol) => {
    await using opened = new Opened();
    const emit = emitter();
    const problems: string[] = [];
    await relayed(opened, protocol, [], { onProblem: (problem) => void problems.push(problem) });
    for (let count = 0; count < 2; count++) emit("error", new Error("accept ENOBUFS"));
    expect(problems).toEqual(Array(2).fill(expect.stringMatching(/^default\/web: failed to .*accept ENOBUFS$/)));
  },
);

test("only the caller reports a port that is taken", async () => {
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
  const { relay, traffic } = await relayed(opened, "UDP", [server]);
  const info = { address: "127.0.0.1", port: 0, family: "IPv4", size: 1 } as const;
  emit("message", Buffer.from("?"), info);
  await answered.promise;
  // Answers come in order: that of another client, asked after it, is there when the first one's has been seen.
  const client = await opened.datagrams();
  client.send("!", relay.port, "127.0.0.1");
  await once(client, "message");
  expect(traffic.counts).toMatchObject({ accepted: { UDP: 2 }, bytes: { "to-endpoint": 2, "to-client": 1 } });
});
