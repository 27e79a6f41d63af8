import type { Destination, DestinationKey, VirtualServer, VirtualServerKey, VirtualServerState } from "./ipvs.ts";
import { Problem } from "./problem.ts";

type Protocol = VirtualServerKey["protocol"];

const PROTOCOLS: Readonly<Record<string, Protocol>> = { "-t": "TCP", "-u": "UDP", "--sctp-service": "SCTP" };

/**
 * Puts virtual servers together from the lines of `ipvsadm --save -n`, which prints each server and then its
 * destinations. Servers by firewall mark are passed over.
 */
export class ServerReader {
  #open: { readonly server: VirtualServer; readonly key: string; readonly destinations: Destination[] } | undefined;

  /**
   * @returns the server that this line shows to be complete
   * @throws Problem for a line that `ipvsadm --save -n` does not print
   */
  push(line: string): VirtualServerState | undefined {
    const words = line.trim().split(" ");
    const [command, option = "", address = "", ...rest] = words;
    if (command === "" || option === "-f") return undefined;
    const protocol = PROTOCOLS[option];
    if (protocol === undefined) throw new Problem(`no line of ipvsadm --save: ${line}`);
    if (command === "-a") {
      this.#add(address, rest, line);
      return undefined;
    }
    if (command !== "-A") throw new Problem(`no line of ipvsadm --save: ${line}`);
    const complete = this.end();
    this.#open = { server: parseServer(protocol, address, rest), key: address, destinations: [] };
    return complete;
  }

  /** @returns the last server */
  end(): VirtualServerState | undefined {
    const open = this.#open;
    this.#open = undefined;
    return open && { ...open.server, destinations: open.destinations };
  }

  #add(address: string, words: readonly string[], line: string): void {
    if (this.#open?.key !== address) throw new Problem(`a destination of a server that has not begun: ${line}`);
    this.#open.destinations.push(parseDestination(words));
  }
}

/** Options of a server line with one value each, in the order in which ipvsadm prints them. */
function parseServer(protocol: Protocol, address: string, words: readonly string[]): VirtualServer {
  let scheduler = "wlc";
  let flags: readonly string[] = [];
  let persistenceSeconds: number | undefined;
  const others: string[] = [];
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? "";
    if (word === "-s") scheduler = words[++at] ?? "";
    else if (word === "-b") flags = (words[++at] ?? "").split(",").sort();
    else if (word === "-p") persistenceSeconds = Number(words[++at]);
    else others.push(word);
  }
  return {
    ...serverKey(protocol, address),
    scheduler,
    flags,
    ...(persistenceSeconds !== undefined && { persistenceSeconds }),
    ...(others.length > 0 && { others }),
  };
}

function serverKey(protocol: Protocol, text: string): VirtualServerKey {
  return { family: text.startsWith("[") ? "IPv6" : "IPv4", protocol, ...parseAddressAndPort(text) };
}

const FORWARDING = { "-m": "masquerade", "-g": "route", "-i": "tunnel" } as const;

function parseDestination(words: readonly string[]): Destination {
  const real = words.indexOf("-r");
  const weight = words.indexOf("-w");
  const forwarding = (["-m", "-g", "-i"] as const).find((option) => words.includes(option)) ?? "-g";
  return {
    ...parseAddressAndPort(words[real + 1] ?? ""),
    weight: weight === -1 ? 1 : Number(words[weight + 1]),
    forwarding: FORWARDING[forwarding],
  };
}

/**
 * `10.96.0.1:443` or `[fd00::1]:443`.
 *
 * @throws Problem when it is neither
 */
export function parseAddressAndPort(text: string): DestinationKey {
  const colon = text.lastIndexOf(":");
  const port = Number(text.slice(colon + 1));
  const host = text.slice(0, colon);
  const address = host.startsWith("[") && host.endsWith("]") ? host.slice(1, -1) : host;
  if (colon <= 0 || address === "" || !Number.isInteger(port)) throw new Problem(`"${text}" is no address and port`);
  return { address, port };
}
