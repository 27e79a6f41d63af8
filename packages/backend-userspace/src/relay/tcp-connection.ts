import type { Socket } from "node:net";
import type { RelayRequest } from "./relay.ts";
import type { RelayedConnection } from "./relayed.ts";
import type { Live } from "./traffic.ts";

/**
 * A client and an endpoint, joined. `pipe` stops reading from one while the other does not take more, so that a
 * connection never holds more than the buffers of its four streams; the end of one direction ends the other side's
 * input only; and what breaks off breaks off on both sides.
 */
export class TcpConnection implements Live {
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
