/** Connections with Services, and their endpoints. */

import { familyOf } from "@fairlead/base";
import type { Connection } from "@fairlead/kernel";
import { endpointSlice, service } from "@fairlead/testkit";

export const web = service("web", {
  namespace: "shop",
  type: "NodePort",
  clusterIPs: ["10.96.0.10", "fd00:10:96::a"],
  ports: [
    { name: "http", port: 80, nodePort: 30_080 },
    { name: "dns", port: 53, protocol: "UDP" },
  ],
});
export const api = service("api", { namespace: "shop", clusterIPs: ["10.96.0.11"], ports: [{ port: 443 }] });
export const other = service("web", { namespace: "other", clusterIPs: ["10.96.0.12"], ports: [{ port: 80 }] });
export const slice = endpointSlice("web-1", {
  namespace: "shop",
  service: "web",
  family: "IPv4",
  ports: [{ name: "http", port: 8_080 }],
  endpoints: [{ address: "10.144.2.6" }],
});
/** What clients call, and what answers: `web`, endpoints that are there and gone. */
export const HTTP = ["10.96.0.10", 80] as const;
export const A = ["10.144.2.6", 8_080] as const;
export const B = ["10.144.2.7", 8_080] as const;

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
