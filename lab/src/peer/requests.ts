/** What a peer does: it sends requests and serves them. */

import { createSocket } from "node:dgram";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { Agent, createServer, request as requestOver } from "node:http";
import {
  type Answer,
  codeOf,
  type Ending,
  endpointText,
  type ListenPorts,
  type Probe,
  type ProbeResult,
  paddingPath,
} from "./protocol.ts";

/** Sends the probe's requests, `parallel` at a time. */
export async function send(probe: Probe): Promise<readonly ProbeResult[]> {
  const results: ProbeResult[] = [];
  let left = probe.count;
  const lane = async () => {
    while (left-- > 0) results.push(await request(probe));
  };
  await Promise.all(Array.from({ length: Math.min(probe.parallel, probe.count) }, lane));
  return results;
}

/** Listens on every address of both families, HTTP over TCP and datagrams over UDP; each answer is an `Answer`. */
export async function serve(server: string, ports: ListenPorts): Promise<void> {
  await Promise.all([
    ...ports.tcp.map((port) => serveHttp(server, port)),
    ...ports.udp.flatMap((port) => [serveUdp(server, port, "udp4"), serveUdp(server, port, "udp6")]),
  ]);
}

/** From the first to the last. */
export type PortRange = readonly [first: number, last: number];

/** Nothing listens on these: kubelets and proxies are below them, node ports between them. */
const HIGH: PortRange = [33_000, 60_999];
const LOW: PortRange = [11_000, 29_999];

/**
 * Where a peer's source ports come from.
 *
 * @param kernel where the kernel takes ports for other sockets of this namespace (`net.ipv4.ip_local_port_range`): a
 *   port in use cannot be bound
 */
export function portsOutside([first, last]: PortRange): PortRange {
  return first <= HIGH[1] && last >= HIGH[0] ? LOW : HIGH;
}

/** One request. Where the probe leaves the source port to the peer, a port that another socket has is not used. */
async function request(probe: Probe): Promise<ProbeResult> {
  for (;;) {
    const started = performance.now();
    const port = probe.sourcePort ?? sourcePort();
    const ending = await (probe.protocol === "TCP" ? requestHttp(probe, port) : requestUdp(probe, port));
    const ended = performance.now();
    const isTaken = ending.kind === "error" && ending.code === "EADDRINUSE" && probe.sourcePort === undefined;
    if (!isTaken) return { at: performance.timeOrigin + ended, ms: ended - started, ...ending };
  }
}

function requestHttp(probe: Probe, localPort: number): Promise<Ending> {
  return new Promise((resolve) => {
    let sender = "";
    const call = requestOver({
      host: probe.to,
      port: probe.port,
      agent: probe.hold === true && new Agent({ keepAlive: true }),
      timeout: probe.timeoutMs,
      localPort,
      ...(probe.padding !== undefined && { path: paddingPath(probe.padding) }),
      ...(probe.source !== undefined && { localAddress: probe.source }),
    });
    call.on("socket", (socket) => {
      socket.on("connect", () => {
        sender = endpointText(socket.localAddress, socket.localPort);
      });
    });
    call.on("response", (response) => {
      response.setEncoding("utf8");
      let body = "";
      response.on("data", (piece: string) => {
        body += piece;
      });
      response.on("end", () => resolve(answered(body, sender)));
    });
    call.on("timeout", () => {
      resolve({ kind: "lost" });
      call.destroy();
    });
    call.on("error", (error) => resolve(failed(error)));
    call.end();
  });
}

function requestUdp(probe: Probe, port: number): Promise<Ending> {
  const socket = createSocket(probe.to.includes(":") ? "udp6" : "udp4");
  return new Promise<Ending>((resolve) => {
    let late: NodeJS.Timeout | undefined;
    const end = (result: Ending) => {
      clearTimeout(late);
      resolve(result);
    };
    // A busy machine may take as long until it is sent.
    const sent = (error: Error | null) => {
      if (error !== null) return end(failed(error));
      late = setTimeout(() => resolve({ kind: "lost" }), probe.timeoutMs);
    };
    socket.on("error", (error) => end(failed(error)));
    socket.on("message", (message) => end(answered(String(message), senderOf(socket))));
    // Only a connected socket receives ICMP errors.
    socket.on("connect", () => socket.send("who are you?", sent));
    const from = probe.source === undefined ? {} : { address: probe.source };
    socket.bind({ ...from, port }, () => socket.connect(probe.port, probe.to));
  }).finally(() => probe.hold === true || socket.close());
}

function senderOf(socket: { address(): { address: string; port: number } }): string {
  const { address, port } = socket.address();
  return endpointText(address, port);
}

/** The answer is the first line of the body, padding what follows. What is none fails its request, and not the peer. */
function answered(body: string, sender: string): Ending {
  const end = body.indexOf("\n");
  const line = end === -1 ? body : body.slice(0, end);
  let answer: Answer;
  try {
    answer = JSON.parse(line);
  } catch {
    return { kind: "error", code: `no answer: ${JSON.stringify(line)}` };
  }
  const padding = end === -1 ? 0 : body.length - end - 1;
  return { kind: "answer", sender, ...answer, ...(padding > 0 && { padding }) };
}

function failed(error: unknown): Ending {
  const code = codeOf(error);
  return code === "ECONNREFUSED" ? { kind: "refused" } : { kind: "error", code };
}

const MAX_PADDING = 64 << 20;

async function serveHttp(server: string, port: number): Promise<void> {
  const http = createServer((request, response) => {
    const { localAddress, localPort, remoteAddress, remotePort } = request.socket;
    const answer: Answer = {
      server,
      local: endpointText(localAddress, localPort),
      remote: endpointText(remoteAddress, remotePort),
    };
    response.setHeader("content-type", "application/json");
    response.write(`${JSON.stringify(answer)}\n`);
    response.end("x".repeat(paddingOf(request.url)));
  });
  // A caller keeps a connection for as long as it likes.
  http.keepAliveTimeout = 0;
  http.listen(port, "::");
  await once(http, "listening");
}

function paddingOf(url = "/"): number {
  const wanted = Number(new URL(url, "http://peer").searchParams.get("padding") ?? "0");
  return Math.min(wanted, MAX_PADDING);
}

async function serveUdp(server: string, port: number, type: "udp4" | "udp6"): Promise<void> {
  const socket = createSocket({ type, ipv6Only: type === "udp6" });
  socket.on("message", (_, sender) => {
    // A wildcard socket does not learn which of its addresses was asked: "*" stands for any of this host's.
    const answer: Answer = { server, local: `*:${port}`, remote: endpointText(sender.address, sender.port) };
    socket.send(JSON.stringify(answer), sender.port, sender.address);
  });
  socket.bind(port);
  await once(socket, "listening");
}

function kernelRange(): PortRange {
  const [first = 0, last = 0] = readFileSync("/proc/sys/net/ipv4/ip_local_port_range", "utf8").split(/\s+/).map(Number);
  return [first, last];
}

/** @param seed two peers of one namespace with different ones do not begin at the same port */
export function firstPort([first, last]: PortRange, seed: number): number {
  return first + ((seed * 997) % (last - first + 1));
}

let range: PortRange | undefined;
let next: number | undefined;

/**
 * A source port that this peer has not used for a long while. Left to itself the kernel may take one again for another
 * address, and where two frontends have one endpoint the connections are the same but for the frontend: connection
 * tracking then changes a port, which looks like masquerading, and ip_vs takes the one's answer for the other's.
 */
function sourcePort(): number {
  range ??= portsOutside(kernelRange());
  const [first, last] = range;
  next = next === undefined ? firstPort(range, process.pid) : next >= last ? first : next + 1;
  return next;
}
