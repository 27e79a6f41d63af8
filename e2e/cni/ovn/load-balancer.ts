import type { CniNode, OwnService } from "../flavour.ts";
import type { OvnClients } from "./clients.ts";
import { switchOf } from "./topology.ts";

/** A load balancer of OVN's for the service, on the switches of all nodes; it takes the place of the one that was. */
export async function serve(clients: OvnClients, nodes: readonly CniNode[], service: OwnService): Promise<void> {
  const { name, protocol, clusterIP, port, backends } = service;
  const frontend = clusterIP.includes(":") ? `[${clusterIP}]:${port}` : `${clusterIP}:${port}`;
  const add =
    backends.length === 0
      ? []
      : [
          ["lb-add", name, frontend, backends.join(","), protocol.toLowerCase()],
          ...nodes.map(({ index }) => ["ls-lb-add", switchOf(index), name]),
        ];
  await clients.northbound([["--if-exists", "lb-del", name], ...add], "hv");
}
