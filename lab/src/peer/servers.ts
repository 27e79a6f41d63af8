import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:http";
import type { Answer, ListenPorts } from "./protocol.ts";
import { endpointText } from "./sockets.ts";

const MAX_PADDING = 64 << 20;

/** Listens on every address of both families, HTTP over TCP and datagrams over UDP; each answer is an `Answer`. */
export async function serve(server: string, ports: ListenPorts): Promise<void> {
  await Promise.all([
    ...ports.tcp.map((port) => serveHttp(server, port)),
    ...ports.udp.flatMap((port) => [serveUdp(server, port, "udp4"), serveUdp(server, port, "udp6")]),
  ]);
}

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
  // Whoever keeps a connection keeps it for as long as it likes.
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
