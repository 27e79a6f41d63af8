import { createSocket } from "node:dgram";
import { Agent, request } from "node:http";
import { sourcePort } from "./ports.ts";
import { type Answer, type Ending, type Probe, type ProbeResult, paddingPath } from "./protocol.ts";
import { codeOf, endpointText } from "./sockets.ts";

/** Sends the probe's requests, `parallel` at a time. */
export async function send(probe: Probe): Promise<readonly ProbeResult[]> {
  const results: ProbeResult[] = [];
  let left = probe.count;
  const once = probe.protocol === "TCP" ? requestHttp : requestUdp;
  const lane = async () => {
    while (left-- > 0) results.push(await timed(() => once(probe)));
  };
  await Promise.all(Array.from({ length: Math.min(probe.parallel, probe.count) }, lane));
  return results;
}

async function timed(request: () => Promise<Ending>): Promise<ProbeResult> {
  const started = performance.now();
  const ending = await request();
  const ended = performance.now();
  return { at: performance.timeOrigin + ended, ms: ended - started, ...ending };
}

function requestHttp(probe: Probe): Promise<Ending> {
  return new Promise((resolve) => {
    let sender = "";
    const call = request({
      host: probe.to,
      port: probe.port,
      agent: probe.hold === true && new Agent({ keepAlive: true }),
      timeout: probe.timeoutMs,
      localPort: probe.sourcePort ?? sourcePort(),
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

function requestUdp(probe: Probe): Promise<Ending> {
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
    // Only a connected socket is told of ICMP errors.
    socket.on("connect", () => socket.send("who are you?", sent));
    const from = probe.source === undefined ? {} : { address: probe.source };
    socket.bind({ ...from, port: probe.sourcePort ?? sourcePort() }, () => socket.connect(probe.port, probe.to));
  }).finally(() => probe.hold === true || socket.close());
}

function senderOf(socket: { address(): { address: string; port: number } }): string {
  const { address, port } = socket.address();
  return endpointText(address, port);
}

/** The answer is the first line of the body, padding what follows. */
function answered(body: string, sender: string): Ending {
  const end = body.indexOf("\n");
  const answer: Answer = JSON.parse(end === -1 ? body : body.slice(0, end));
  const padding = end === -1 ? 0 : body.length - end - 1;
  return { kind: "answer", sender, ...answer, ...(padding > 0 && { padding }) };
}

function failed(error: unknown): Ending {
  const code = codeOf(error);
  return code === "ECONNREFUSED" ? { kind: "refused" } : { kind: "error", code };
}
