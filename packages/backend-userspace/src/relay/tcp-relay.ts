import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { dial } from "./dial.ts";
import { type OpenRelay, type RelayRequest, reachedLimit, takeSockets } from "./relay.ts";
import { TcpConnection } from "./tcp-connection.ts";

const BACKLOG = 1_024;

export async function openTcpRelay(request: RelayRequest): Promise<OpenRelay> {
  const server = createServer({ allowHalfOpen: true, noDelay: true, keepAlive: true });
  const { address: host, port } = request;
  server.listen({ host, port, exclusive: true, ipv6Only: true, backlog: BACKLOG });
  await once(server, "listening");
  takeSockets(request, 1);
  const listening = { protocol: "TCP", address: host, port: portOf(server) } as const;
  request.traffic.listening.add(listening);
  server.on("connection", (client) => void take(client, request));
  // Sockets may run out for a moment; the listening one goes on.
  server.on("error", (error) => request.onProblem(`${request.service.name}: failed to accept a connection: ${error}`));
  return {
    port: listening.port,
    *refresh() {},
    close() {
      takeSockets(request, -1);
      request.traffic.listening.delete(listening);
      server.close();
    },
  };
}

function portOf(server: Server): number {
  const bound = server.address();
  if (bound === null || typeof bound === "string") throw new Error("the socket has no port");
  return bound.port;
}

async function take(client: Socket, request: RelayRequest): Promise<void> {
  const { traffic } = request;
  const gone = new AbortController();
  const leave = () => gone.abort();
  client.on("error", leave).on("close", leave);
  const limit = reachedLimit(request, 2);
  if (limit !== undefined) {
    traffic.refused(limit);
    client.resetAndDestroy();
    return;
  }
  takeSockets(request, 2);
  const dialled = await dial(request, client.remoteAddress ?? "", gone.signal).catch((error: unknown) => {
    request.onProblem(`${request.service.name}: failed to relay a connection: ${error}`);
    return "unreachable" as const;
  });
  if (typeof dialled === "string") {
    takeSockets(request, -2);
    traffic.refused(dialled);
    client.resetAndDestroy();
    return;
  }
  client.off("error", leave).off("close", leave);
  traffic.accepted("TCP");
  new TcpConnection(client, dialled, request, () => takeSockets(request, -2));
}
