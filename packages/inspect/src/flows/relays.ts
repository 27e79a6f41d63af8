import { isObject, parseAddress, socketText, valueAt } from "@fairlead/base";
import type { FlowSocket } from "./flow.ts";
import type { TrackedConnection } from "./tracked.ts";

/** What the agent of a node in userspace mode relays, at the moment when it was asked. */
export interface Relays {
  /** Whether what answers a connection is a relay: to the kernel it is the endpoint. */
  answers(connection: TrackedConnection): boolean;
  /** The endpoint that a relay has given a connection; undefined: none yet, or it is over. */
  endpointOf(connection: TrackedConnection): FlowSocket | undefined;
}

/**
 * Reads the agent's page `/relays`: JSON by lines, one for each relay that listens and for each connection.
 *
 * @throws SyntaxError when it is something else
 */
export function readRelays(page: string): Relays {
  const listening = new Set<string>();
  const endpoints = new Map<string, FlowSocket>();
  for (const line of page.split("\n")) {
    if (line === "") continue;
    const said: unknown = JSON.parse(line);
    if (isObject(said) && said["listening"] !== undefined) {
      const relay = socketIn(said["listening"]);
      listening.add(`${protocolIn(said["listening"])} ${socketText(relay.address, relay.port)}`);
    } else if (isObject(said) && said["connection"] !== undefined) {
      const connection = said["connection"];
      const [client, relay, endpoint] = ["client", "relay", "endpoint"].map((name) =>
        socketIn(valueAt(connection, name)),
      );
      if (client !== undefined && relay !== undefined && endpoint !== undefined) {
        endpoints.set(relayKey(protocolIn(connection), client, relay), endpoint);
      }
    }
  }
  return {
    answers: ({ protocol, reply }) => listening.has(`${protocol} ${socketText(reply.source, reply.sourcePort)}`),
    endpointOf({ protocol, reply }) {
      const client = { address: reply.destination, port: reply.destinationPort };
      return endpoints.get(relayKey(protocol, client, { address: reply.source, port: reply.sourcePort }));
    },
  };
}

function relayKey(protocol: string, client: FlowSocket, relay: FlowSocket): string {
  return `${protocol} ${socketText(client.address, client.port)} ${socketText(relay.address, relay.port)}`;
}

function socketIn(said: unknown): FlowSocket {
  const [address, port] = [valueAt(said, "address"), valueAt(said, "port")];
  const parsed = typeof address === "string" ? parseAddress(address) : undefined;
  if (parsed === undefined || typeof port !== "number") {
    throw new SyntaxError(`${JSON.stringify(said)} must have an IP address and a port`);
  }
  return { address: parsed.text, port };
}

function protocolIn(said: unknown): string {
  const protocol = valueAt(said, "protocol");
  if (protocol === "TCP" || protocol === "UDP") return protocol;
  throw new SyntaxError(`${JSON.stringify(said)} must have protocol TCP or UDP`);
}
