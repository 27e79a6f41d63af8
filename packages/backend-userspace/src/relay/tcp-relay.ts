/** Relays of TCP. */

import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { dial } from "./balancer.ts";
import { type OpenRelay, type RelayRequest, takeSockets, whyRefused } from "./relay.ts";
import type { Live, RelayedConnection } from "./traffic.ts";

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
  const refusal = whyRefused(request, client.remoteAddress ?? "", 2);
  if (refusal !== undefined) {
    traffic.refused(refusal);
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

/**
 * A client and an endpoint, joined. `pipe` stops reading from one while the other does not take more, so that a
 * connection never holds more than the buffers of its four streams; the end of one direction ends the other side's
 * input only; and what breaks off breaks off on both sides.
 */
class TcpConnection implements Live {
  readonly #client: Socket;
  readonly #endpoint: Socket;
  readonly #request: Pick<RelayRequest, "traffic">;
  readonly #onClosed: () => void;
  readonly #open: Set<Socket>;

  constructor(client: Socket, endpoint: Socket, request: RelayRequest, onClosed: () => void) {
    this.#client = client;
    this.#endpoint = endpoint;
    this.#request = request;
    this.#onClosed = onClosed;
    this.#open = new Set([client, endpoint]);
    request.traffic.add(this);
    this.#follow(client, endpoint);
    this.#follow(endpoint, client);
    if (request.tcpIdleTimeout > 0) client.setTimeout(request.tcpIdleTimeout, () => this.#idle());
    client.pipe(endpoint);
    endpoint.pipe(client);
    // The client may have gone in the turn in which the endpoint was connected.
    if (client.destroyed) endpoint.resetAndDestroy();
  }

  end(): void {
    this.#client.unpipe(this.#endpoint).end();
    this.#endpoint.unpipe(this.#client).end();
    // What still comes is read to its end and forgotten.
    this.#client.resume();
    this.#endpoint.resume();
  }

  destroy(): void {
    this.#client.resetAndDestroy();
    this.#endpoint.resetAndDestroy();
  }

  relayed(): RelayedConnection | undefined {
    const { remoteAddress, remotePort, localAddress, localPort } = this.#client;
    const { remoteAddress: endpoint, remotePort: port } = this.#endpoint;
    if (remoteAddress === undefined || remotePort === undefined || endpoint === undefined || port === undefined) {
      return undefined;
    }
    if (localAddress === undefined || localPort === undefined) return undefined;
    return {
      protocol: "TCP",
      client: { address: remoteAddress, port: remotePort },
      relay: { address: localAddress, port: localPort },
      endpoint: { address: endpoint, port },
    };
  }

  #follow(socket: Socket, other: Socket): void {
    socket.on("error", () => other.resetAndDestroy());
    socket.once("close", () => this.#closed(socket, other));
    if (socket.destroyed) this.#closed(socket, other);
  }

  #closed(socket: Socket, other: Socket): void {
    if (!this.#open.delete(socket)) return;
    // Without an end of its input it was broken off, and the other side must not take that for an end.
    if (!socket.readableEnded) other.resetAndDestroy();
    if (this.#open.size > 0) return;
    const { traffic } = this.#request;
    traffic.delete(this);
    traffic.carried("to-endpoint", this.#client.bytesRead);
    traffic.carried("to-client", this.#endpoint.bytesRead);
    this.#onClosed();
  }

  #idle(): void {
    this.#request.traffic.idled();
    this.destroy();
  }
}
