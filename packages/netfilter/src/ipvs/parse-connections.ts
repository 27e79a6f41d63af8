import type { Destination, DestinationConnections, ServerConnections } from "./ipvs.ts";
import { parseAddressAndPort } from "./parse-command.ts";

const FORWARDING: Readonly<Record<string, Destination["forwarding"]>> = {
  Masq: "masquerade",
  Route: "route",
  Local: "route",
  Tunnel: "tunnel",
};

/**
 * Puts together what the lines of `ipvsadm --list -n` tell of connections: a heading of three lines, then each server
 * and its destinations (`  -> 10.144.1.5:8080   Masq    1      0          0`). Servers by firewall mark are passed
 * over.
 */
export class ConnectionReader {
  #open:
    | { readonly server: Omit<ServerConnections, "destinations">; readonly destinations: DestinationConnections[] }
    | undefined;

  /** @returns the server that this line shows to be complete */
  push(line: string): ServerConnections | undefined {
    const [first = "", second = "", ...rest] = line.trim().split(/\s+/);
    if (first === "->") {
      this.#add(second, rest);
      return undefined;
    }
    const complete = this.end();
    if (first === "TCP" || first === "UDP" || first === "SCTP") {
      const family = second.startsWith("[") ? "IPv6" : "IPv4";
      this.#open = { server: { family, protocol: first, ...parseAddressAndPort(second) }, destinations: [] };
    }
    return complete;
  }

  /** @returns the last server */
  end(): ServerConnections | undefined {
    const open = this.#open;
    this.#open = undefined;
    return open && { ...open.server, destinations: open.destinations };
  }

  #add(address: string, [forward = "", weight, active, inactive]: readonly string[]): void {
    const forwarding = FORWARDING[forward];
    // Lines of the heading and of servers by firewall mark belong to none that is open.
    if (this.#open === undefined || forwarding === undefined) return;
    this.#open.destinations.push({
      ...parseAddressAndPort(address),
      forwarding,
      weight: Number(weight),
      active: Number(active),
      inactive: Number(inactive),
    });
  }
}
