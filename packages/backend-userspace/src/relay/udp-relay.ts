import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { isIPv6 } from "node:net";
import { MAX_QUEUED_BYTES, type OpenRelay, type RelayRequest, reachedLimit, takeSockets } from "./relay.ts";
import { UdpFlow } from "./udp-flow.ts";

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
    const limit = reachedLimit(request, 1);
    if (limit !== undefined) {
      traffic.refused(limit);
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
