/** Relays of UDP: one flow for each client. */

import { createSocket, type Socket, type SocketType } from "node:dgram";
import { once } from "node:events";
import { isIPv6 } from "node:net";
import type { PlanEndpoint } from "@fairlead/core";
import { DIAL_TIMEOUTS, endpointKey } from "./balancer.ts";
import { MAX_QUEUED_BYTES, type OpenRelay, type RelayRequest, takeSockets, whyRefused } from "./relay.ts";
import type { ListeningRelay, Live, RelayedConnection } from "./traffic.ts";

export async function openUdpRelay(request: RelayRequest): Promise<OpenRelay> {
  const { address, port, service, traffic } = request;
  const type = isIPv6(address) ? "udp6" : "udp4";
  const socket = createSocket({ type, ...(type === "udp6" && { ipv6Only: true }) });
  socket.bind({ address, port, exclusive: true });
  await once(socket, "listening");
  takeSockets(request, 1);
  const relay = { protocol: "UDP", address, port: socket.address().port } as const;
  traffic.listening.add(relay);
  socket.on("error", (error) => request.onProblem(`${service.name}: failed to relay a datagram: ${error}`));
  const flows = new Map<string, UdpFlow>();
  socket.on("message", (data, { address: client, port: clientPort }) => {
    const key = `${client} ${clientPort}`;
    const flow = flows.get(key) ?? open(key, client, clientPort);
    if (flow === undefined) return;
    traffic.carried("to-endpoint", data.length);
    flow.send(data);
  });

  function open(key: string, client: string, clientPort: number): UdpFlow | undefined {
    const refusal = whyRefused(request, client, 1);
    if (refusal !== undefined) {
      traffic.refused(refusal);
      return undefined;
    }
    const flow = new UdpFlow({
      type,
      client,
      clientPort,
      relay,
      request,
      answer: (data) => answer(socket, data, client, clientPort, request),
      onClosed: () => {
        if (!flows.delete(key)) return;
        takeSockets(request, -1);
        traffic.delete(flow);
      },
    });
    if (!flow.open()) {
      traffic.refused("no-endpoint");
      return undefined;
    }
    flows.set(key, flow);
    takeSockets(request, 1);
    traffic.add(flow);
    traffic.accepted("UDP");
    return flow;
  }

  return {
    port: relay.port,
    *refresh() {
      for (const flow of [...flows.values()]) {
        if (!flow.isServed()) flow.end();
        yield;
      }
    },
    close() {
      for (const flow of [...flows.values()]) flow.end();
      takeSockets(request, -1);
      traffic.listening.delete(relay);
      socket.close();
    },
  };
}

function answer(socket: Socket, data: Buffer, client: string, port: number, { traffic }: RelayRequest): void {
  // A source port of 0 says that no answer is expected (RFC 768), and cannot be sent to.
  if (port === 0 || socket.getSendQueueSize() > MAX_QUEUED_BYTES) return;
  traffic.carried("to-client", data.length);
  // A client that is gone says so by ICMP; the other clients have nothing to do with it.
  socket.send(data, port, client, () => {});
}

interface UdpFlowParts {
  readonly type: SocketType;
  readonly client: string;
  readonly clientPort: number;
  readonly relay: ListeningRelay;
  readonly request: RelayRequest;
  readonly answer: (data: Buffer) => void;
  readonly onClosed: () => void;
}

/**
 * One client's datagrams: a socket that is connected to one endpoint, so that answers are this client's and the kernel
 * reports a refusal. As long as nothing was answered, an endpoint that refuses or has no route is passed over for the
 * next, and the last datagram is sent again there.
 */
class UdpFlow implements Live {
  readonly #parts: UdpFlowParts;
  readonly #failed = new Set<string>();
  #endpoint: PlanEndpoint | undefined;
  #socket: Socket | undefined;
  #connected = false;
  /** Sent before the socket was connected. */
  #early: Buffer[] = [];
  #unanswered: Buffer | undefined;
  #answered = false;
  #tries = 0;
  #active = 0;
  #cancel = () => {};

  constructor(parts: UdpFlowParts) {
    this.#parts = parts;
  }

  /** False: there is no endpoint. */
  open(): boolean {
    const { clock, udpIdleTimeout } = this.#parts.request;
    this.#active = clock.monotonic();
    if (!this.#connect()) return false;
    this.#cancel = clock.after(udpIdleTimeout, () => this.#checkIdle());
    return true;
  }

  send(data: Buffer): void {
    this.#active = this.#parts.request.clock.monotonic();
    if (!this.#answered) this.#unanswered = data;
    if (this.#connected) this.#write(data);
    else if (this.#early.length < MAX_EARLY) this.#early.push(data);
  }

  isServed(): boolean {
    return this.#endpoint !== undefined && this.#parts.request.service.has(this.#endpoint);
  }

  end(): void {
    this.#cancel();
    this.#socket?.close();
    this.#socket = undefined;
    this.#connected = false;
    this.#parts.onClosed();
  }

  destroy(): void {
    this.end();
  }

  relayed(): RelayedConnection | undefined {
    const { client, clientPort, relay } = this.#parts;
    const endpoint = this.#endpoint;
    if (endpoint === undefined) return undefined;
    return {
      protocol: "UDP",
      client: { address: client, port: clientPort },
      relay: { address: relay.address, port: relay.port },
      endpoint: { address: endpoint.address, port: endpoint.port },
    };
  }

  #connect(): boolean {
    const { type, client, request } = this.#parts;
    const endpoint = request.service.choose(client, this.#failed);
    if (endpoint === undefined) return false;
    const socket = createSocket(type);
    this.#endpoint = endpoint;
    this.#socket = socket;
    this.#connected = false;
    this.#tries += 1;
    socket.on("error", () => this.#refused(socket));
    socket.on("message", (data) => this.#answer(data));
    // Not as connect's own callback, which is called with the error as well: what connect(2) refuses is an "error" so.
    socket.once("connect", () => this.#ready(socket));
    socket.connect(endpoint.port, endpoint.address);
    return true;
  }

  #ready(socket: Socket): void {
    if (socket !== this.#socket) return;
    this.#connected = true;
    for (const data of this.#early.splice(0)) this.#write(data);
  }

  #answer(data: Buffer): void {
    this.#answered = true;
    this.#unanswered = undefined;
    this.#active = this.#parts.request.clock.monotonic();
    this.#parts.answer(data);
  }

  #write(data: Buffer): void {
    const socket = this.#socket;
    if (socket === undefined || socket.getSendQueueSize() > MAX_QUEUED_BYTES) return;
    socket.send(data, (error) => error && this.#refused(socket));
  }

  #refused(socket: Socket): void {
    if (socket !== this.#socket) return;
    socket.close();
    this.#socket = undefined;
    const { traffic } = this.#parts.request;
    const again = this.#unanswered;
    traffic.passedOver();
    this.#failed.add(endpointKey(this.#endpoint));
    if (again === undefined || this.#tries >= DIAL_TIMEOUTS.length || !this.#connect()) {
      if (again !== undefined) traffic.refused("unreachable");
      this.end();
      return;
    }
    if (!this.#early.includes(again)) this.#early.push(again);
  }

  /** One timer for each flow, set anew only when it fires: most packets do not touch it. */
  #checkIdle(): void {
    const { clock, udpIdleTimeout, traffic } = this.#parts.request;
    const left = this.#active + udpIdleTimeout - clock.monotonic();
    if (left > 0) {
      this.#cancel = clock.after(left, () => this.#checkIdle());
      return;
    }
    traffic.idled();
    this.end();
  }
}

/** Connecting takes a turn of the event loop; no more than a few datagrams come in one. */
const MAX_EARLY = 64;
