import { familyOf } from "@fairlead/base";
import type { Connection } from "@fairlead/kernel";

/** A connection of a client with an address that the kernel has translated to an endpoint: `10.96.0.10`, 80. */
export function tracked(
  called: readonly [address: string, port: number],
  endpoint: readonly [address: string, port: number],
  others: Partial<Pick<Connection, "protocol" | "state">> & { readonly client?: string; readonly port?: number } = {},
): Connection {
  const [destination, destinationPort] = called;
  const { client = "10.144.1.9", port = 40_000, ...rest } = others;
  return {
    family: familyOf(destination),
    protocol: "TCP",
    original: { source: client, sourcePort: port, destination, destinationPort },
    reply: { source: endpoint[0], sourcePort: endpoint[1], destination: client, destinationPort: port },
    replied: true,
    ...rest,
  };
}
