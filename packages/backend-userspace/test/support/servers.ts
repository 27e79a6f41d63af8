import { createSocket, type Socket as DatagramSocket } from "node:dgram";
import { once } from "node:events";
import { connect, createServer, isIPv6, type Server, type Socket } from "node:net";
import { systemClock } from "@fairlead/base";
import type { PlanEndpoint } from "@fairlead/core";
import { createTraffic, type RelayTraffic } from "../../src/index.ts";
import { Balancer } from "../../src/relay/balancer.ts";
import { openRelay } from "../../src/relay/open.ts";
import type { OpenRelay, RelayRequest } from "../../src/relay/relay.ts";
import { SocketBudget } from "../../src/relay/traffic.ts";

const HOST = "127.0.0.1";

export class Opened implements AsyncDisposable {
  readonly #stack = new AsyncDisposableStack();

  async tcp(serve: (socket: Socket) => void, host = HOST): Promise<PlanEndpoint> {
    const server: Server = createServer({ allowHalfOpen: true }, (socket) => {
      this.#stack.defer(() => void socket.destroy());
      socket.on("error", () => {});
      serve(socket);
    });
    server.listen(0, host);
    await once(server, "listening");
    this.#stack.defer(() => void server.close());
    return endpointAt(server.address());
  }

  /** Answers each datagram with what `reply` makes of it. */
  async udp(reply: (data: string, from: number) => string, host = HOST): Promise<PlanEndpoint> {
    const socket = await this.datagrams(host);
    socket.on("message", (data, { port, address }) => socket.send(reply(String(data), port), port, address));
    return endpointAt(socket.address());
  }

  async datagrams(host = HOST): Promise<DatagramSocket> {
    const socket = createSocket(isIPv6(host) ? "udp6" : "udp4");
    socket.bind(0, host);
    await once(socket, "listening");
    this.#stack.defer(() => void socket.close());
    return socket;
  }

  async client(port: number): Promise<Socket> {
    const socket = this.attempt(port);
    await once(socket, "connect");
    return socket;
  }

  /** A client that may be turned away before it knows that it is connected. */
  attempt(port: number): Socket {
    const socket = connect({ host: HOST, port, allowHalfOpen: true });
    this.#stack.defer(() => void socket.destroy());
    return socket;
  }

  defer(work: () => void): void {
    this.#stack.defer(work);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#stack.disposeAsync();
  }
}

let refusing = 0;

/** An endpoint that refuses connections: a loopback address of its own, at a port that the kernel never assigns. */
export function refuser(): PlanEndpoint {
  refusing += 1;
  return { address: `127.9.9.${refusing}`, port: 9, local: true };
}

function endpointAt(bound: { readonly address: string; readonly port: number } | string | null): PlanEndpoint {
  if (bound === null || typeof bound === "string") throw new Error("no port");
  return { address: bound.address, port: bound.port, local: true };
}

/** Takes all steps of an update. */
export function serveSets(balancer: Balancer, sets: Parameters<Balancer["update"]>[0]): void {
  for (const _ of balancer.update(sets));
}

interface Relayed {
  readonly relay: OpenRelay;
  readonly traffic: RelayTraffic;
  serve(endpoints: readonly PlanEndpoint[]): void;
}

interface RelayedOptions extends Partial<Omit<RelayRequest, "service">> {
  readonly affinitySeconds?: number;
  readonly maxSocketsPerService?: number;
}

/** A relay on a real socket, with endpoints behind it. */
export async function relayed(
  opened: Opened,
  protocol: "TCP" | "UDP",
  endpoints: readonly PlanEndpoint[],
  { affinitySeconds, maxSocketsPerService = 1_000, ...options }: RelayedOptions = {},
): Promise<Relayed> {
  const clock = options.clock ?? systemClock;
  const balancer = new Balancer(() => clock.monotonic());
  const serve = (cluster: readonly PlanEndpoint[]) =>
    serveSets(balancer, { cluster, local: [], ...(affinitySeconds !== undefined && { affinitySeconds }) });
  serve(endpoints);
  const traffic = options.traffic ?? createTraffic();
  const relay = await openRelay({
    protocol,
    address: "127.0.0.1",
    port: 0,
    traffic,
    clock,
    udpIdleTimeout: 60_000,
    tcpIdleTimeout: 0,
    onProblem: (problem) => {
      throw new Error(problem);
    },
    ...options,
    service: {
      name: "default/web",
      choose: (client, failed) => balancer.choose("cluster", client, failed),
      has: (endpoint) => balancer.has("cluster", endpoint),
      sockets: new SocketBudget(maxSocketsPerService),
    },
  });
  let open = true;
  const close = () => {
    if (open) relay.close();
    open = false;
  };
  opened.defer(close);
  return {
    relay: { ...relay, close },
    traffic,
    serve(next) {
      serve(next);
      for (const _ of relay.refresh());
    },
  };
}
