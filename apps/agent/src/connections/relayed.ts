import type { RelayTraffic } from "@fairlead/backend-userspace";
import { socketText, type Yield } from "@fairlead/base";
import type { Connection } from "@fairlead/kernel";

/** Who answers a connection in the end, as `address:port`; undefined: a relay that has no endpoint for it. */
export type EndpointOf = (connection: Connection) => string | undefined;

/** What the kernel sees: it has translated the connection to its endpoint. */
export const endpointOf: EndpointOf = ({ reply }) => socketText(reply.source, reply.sourcePort);

/** Where this process itself carries the traffic the kernel sees a relay, and only the relays know their endpoints. */
export async function relayedEndpoints(
  relays: Pick<RelayTraffic, "connections">,
  yielding: Yield,
): Promise<EndpointOf> {
  const endpoints = new Map<string, string>();
  for (const { protocol, client, relay, endpoint } of relays.connections()) {
    const key = relayKey(protocol, socketText(client.address, client.port), socketText(relay.address, relay.port));
    endpoints.set(key, socketText(endpoint.address, endpoint.port));
    await yielding();
  }
  return ({ protocol, reply }) => {
    const client = socketText(reply.destination, reply.destinationPort);
    return endpoints.get(relayKey(protocol, client, socketText(reply.source, reply.sourcePort)));
  };
}

function relayKey(protocol: string, client: string, relay: string): string {
  return `${protocol} ${client} ${relay}`;
}
