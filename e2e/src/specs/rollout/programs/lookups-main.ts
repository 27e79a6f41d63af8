import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { codeOf } from "@fairlead/lab/peer/protocol";
import { answerLines } from "@fairlead/lab/support/script";

/**
 * Asks each DNS server for a name without a pause, over UDP and over TCP, each time from a socket of its own. Any line
 * is answered by `{"requests", "failures"}` as JSON: how many lookups there were, and what came of each that failed.
 * Usage: lookups-main.ts NAME TYPE SERVER...
 */
const [name = "", type = "", ...servers] = process.argv.slice(2);
const PORT = 53;
const PAUSE_MS = 50;
const TIMEOUT_MS = 15_000;
const TYPES: Readonly<Record<string, number>> = { A: 1, AAAA: 28 };

/** RFC 1035: a header that asks for recursion and has one question; the name, label by label; type; class IN. */
const question = Buffer.concat([
  Buffer.of(0x12, 0x34, 0x01, 0x00, 0, 1, 0, 0, 0, 0, 0, 0),
  ...`${name}.`.split(".").map((label) => Buffer.concat([Buffer.of(label.length), Buffer.from(label)])),
  Buffer.of(0, TYPES[type] ?? 0, 0, 1),
]);

/**
 * A port that comes again belongs to a flow that the kernel knows. Its endpoint may be ending, and gets lookups until
 * its slice no longer has it, with kube-proxy as well. So each port is used once in twenty minutes.
 */
const PORTS = { first: 10_000, count: 50_000 } as const;
let asked = 0;

async function overUDP(server: string): Promise<Buffer> {
  const socket = createSocket(server.includes(":") ? "udp6" : "udp4");
  try {
    socket.bind(PORTS.first + (asked++ % PORTS.count));
    await once(socket, "listening");
    socket.connect(PORT, server);
    await once(socket, "connect");
    socket.send(question);
    const [answer]: readonly Buffer[] = await once(socket, "message", { signal: AbortSignal.timeout(TIMEOUT_MS) });
    return answer ?? Buffer.of();
  } finally {
    socket.close();
  }
}

async function overTCP(server: string): Promise<Buffer> {
  const socket = connect({ host: server, port: PORT });
  socket.setTimeout(TIMEOUT_MS, () => socket.destroy(new Error("lost")));
  socket.write(Buffer.concat([Buffer.of(0, question.length), question]));
  let came = Buffer.alloc(0);
  for await (const piece of socket) {
    came = Buffer.concat([came, piece]);
    // Leaving the loop closes the connection.
    if (came.length >= 2 && came.length >= 2 + came.readUInt16BE(0)) return came.subarray(2);
  }
  throw new Error("closed without an answer");
}

/** @throws Error when it is not an answer to the question, with an address */
function check(answer: Buffer): void {
  const code = answer.readUInt16BE(2) & 0xf;
  if (answer.readUInt16BE(0) !== question.readUInt16BE(0) || code !== 0) throw new Error(`answer with code ${code}`);
  if (answer.readUInt16BE(6) === 0) throw new Error("answer without an address");
}

const failures: string[] = [];
let requests = 0;

async function lane(server: string, protocol: "UDP" | "TCP"): Promise<never> {
  for (;;) {
    await (protocol === "UDP" ? overUDP(server) : overTCP(server))
      .then(check)
      .catch((error: unknown) => failures.push(`${new Date().toISOString()} ${protocol} ${server}: ${codeOf(error)}`));
    requests++;
    await sleep(PAUSE_MS);
  }
}

answerLines(() => JSON.stringify({ requests, failures }));
await Promise.all(servers.flatMap((server) => [lane(server, "UDP"), lane(server, "TCP")]));
