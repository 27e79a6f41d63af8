/** IPVS' virtual servers: their destinations, the words of ipvsadm for them, and how its output is read. */

import { socketText } from "@fairlead/base";
import { Problem } from "./rule/options.ts";
import type { IPFamily } from "./rule/rule.ts";
import { checkInteger, checkValue } from "./rule/values.ts";

/** What identifies a virtual server. (Those by firewall mark are skipped.) */
export interface VirtualServerKey {
  /** The family of the address. */
  readonly family: IPFamily;
  /** The transport protocol. */
  readonly protocol: "TCP" | "UDP" | "SCTP";
  /** Canonical address. */
  readonly address: string;
  /** 1 to 65535, or 0 for every port. */
  readonly port: number;
}

export interface VirtualServer extends VirtualServerKey {
  /** The kernel's name of the scheduler: rr, wrr, lc, … */
  readonly scheduler: string;
  /** `-b` flags as ipvsadm prints them, sorted: mh-port, sh-port, … */
  readonly flags: readonly string[];
  /** Seconds for which a client stays with its destination; absent: no persistence. */
  readonly persistenceSeconds?: number;
  /** Further options of the save that have no field here (`-o`, `-M 255.255.255.0`), word for word. */
  readonly others?: readonly string[];
}

/** What identifies a destination of a virtual server. */
export interface DestinationKey {
  /** Canonical address. */
  readonly address: string;
  /** 1 to 65535. */
  readonly port: number;
}

/** A destination of a virtual server: a real server in ipvsadm's words. */
export interface Destination extends DestinationKey {
  /** 0: gets no new connections. */
  readonly weight: number;
  /** masquerade: destination NAT, `-m`; the other two change nothing in the packet or wrap it. */
  readonly forwarding: "masquerade" | "route" | "tunnel";
}

/** A virtual server with everything behind it, as `ipvsadm --save` gives it. */
export interface VirtualServerState extends VirtualServer {
  /** In the order of the save. */
  readonly destinations: readonly Destination[];
}

/** What `ipvsadm --list` reports of the connections to a server's destinations. */
export interface ServerConnections extends VirtualServerKey {
  /** In the order of the listing. */
  readonly destinations: readonly DestinationConnections[];
}

export interface DestinationConnections extends Destination {
  /** Connections that are established. */
  readonly active: number;
  /** Connections in every other state. */
  readonly inactive: number;
}

/** A change of one virtual server or destination: a netlink request, or one line of `ipvsadm --restore`. */
export type ServerCommand =
  | { readonly kind: "add-server" | "edit-server"; readonly server: VirtualServer }
  | { readonly kind: "delete-server"; readonly server: VirtualServerKey }
  | {
      readonly kind: "add-destination" | "edit-destination";
      readonly server: VirtualServerKey;
      readonly destination: Destination;
    }
  | { readonly kind: "delete-destination"; readonly server: VirtualServerKey; readonly destination: DestinationKey };

const LETTERS = {
  "add-server": "-A",
  "edit-server": "-E",
  "delete-server": "-D",
  "add-destination": "-a",
  "edit-destination": "-e",
  "delete-destination": "-d",
} as const satisfies Record<ServerCommand["kind"], string>;

/**
 * One line for `ipvsadm --restore`, without its end, in the form of `ipvsadm --save -n`.
 *
 * @throws RuleTextError for what can't be written as one word or number
 */
export function renderServerCommand(command: ServerCommand): string {
  const head = `${LETTERS[command.kind]} ${renderServerKey(command.server)}`;
  switch (command.kind) {
    case "add-server":
    case "edit-server":
      return head + serverOptions(command.server);
    case "delete-server":
      return head;
    case "add-destination":
    case "edit-destination":
      return `${head} -r ${addressAndPort(command.destination)}${destinationOptions(command.destination)}`;
    case "delete-destination":
      return `${head} -r ${addressAndPort(command.destination)}`;
  }
}

const OPTIONS = { TCP: "-t", UDP: "-u", SCTP: "--sctp-service" } as const;

/** `-t 10.96.0.1:443`: how ipvsadm names a virtual server, and a key that no other one has. */
export function renderServerKey(server: VirtualServerKey): string {
  return `${OPTIONS[server.protocol]} ${addressAndPort(server)}`;
}

const PROTOCOLS: Readonly<Record<string, VirtualServerKey["protocol"]>> = {
  "-t": "TCP",
  "-u": "UDP",
  "--sctp-service": "SCTP",
};

/**
 * One line of `ipvsadm --restore` or `ipvsadm --save -n`; `renderServerCommand` read backwards.
 *
 * @returns undefined for servers by firewall mark
 * @throws Problem for a line that is not a command
 */
export function parseServerCommand(line: string): ServerCommand | undefined {
  const [letter = "", option = "", address = "", ...words] = line.trim().split(" ");
  if (option === "-f" && /^-[AEDaed]$/.test(letter)) return undefined;
  const protocol = PROTOCOLS[option];
  if (protocol === undefined) throw new Problem(`no virtual server: ${line}`);
  const key: VirtualServerKey = {
    family: address.startsWith("[") ? "IPv6" : "IPv4",
    protocol,
    ...parseAddressAndPort(address),
  };
  switch (letter) {
    case "-A":
    case "-E":
      return { kind: letter === "-A" ? "add-server" : "edit-server", server: parseServer(key, words) };
    case "-D":
      return { kind: "delete-server", server: key };
    case "-a":
    case "-e":
      return {
        kind: letter === "-a" ? "add-destination" : "edit-destination",
        server: key,
        destination: parseDestination(words),
      };
    case "-d":
      return { kind: "delete-destination", server: key, destination: realServer(words) };
    default:
      throw new Problem(`no command of ipvsadm: ${line}`);
  }
}

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
    const command = line === "" ? undefined : parseServerCommand(line);
    if (command === undefined) return undefined;
    const key = renderServerKey(command.server);
    if (command.kind === "add-server") {
      const complete = this.end();
      this.#open = { server: command.server, key, destinations: [] };
      return complete;
    }
    if (command.kind !== "add-destination" || this.#open?.key !== key) {
      throw new Problem(`no line of ipvsadm --save, or not where it stands: ${line}`);
    }
    this.#open.destinations.push(command.destination);
    return undefined;
  }

  /** @returns the last server */
  end(): VirtualServerState | undefined {
    const open = this.#open;
    this.#open = undefined;
    return open && { ...open.server, destinations: open.destinations };
  }
}

const FORWARDING_OF_WORD: Readonly<Record<string, Destination["forwarding"]>> = {
  Masq: "masquerade",
  Route: "route",
  Local: "route",
  Tunnel: "tunnel",
};

/**
 * Puts together what the lines of `ipvsadm --list -n` report of connections: a heading of three lines, then each server
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
    const forwarding = FORWARDING_OF_WORD[forward];
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

const FORWARDING_OPTIONS = { masquerade: "-m", route: "-g", tunnel: "-i" } as const;

function addressAndPort({ address, port }: DestinationKey): string {
  return socketText(checkValue("address", address), checkInteger("port", port, 0xffff));
}

function serverOptions({ scheduler, flags, persistenceSeconds, others = [] }: VirtualServer): string {
  const persistence =
    persistenceSeconds === undefined ? "" : ` -p ${checkInteger("persistence", persistenceSeconds, 31 * 86_400)}`;
  const chosen = flags.length === 0 ? "" : ` -b ${checkValue("scheduler flags", flags.join(","))}`;
  return ` -s ${checkValue("scheduler", scheduler)}${persistence}${others.map((word) => ` ${word}`).join("")}${chosen}`;
}

function destinationOptions({ forwarding, weight }: Destination): string {
  return ` ${FORWARDING_OPTIONS[forwarding]} -w ${checkInteger("weight", weight, 65_535)}`;
}

function parseServer(key: VirtualServerKey, words: readonly string[]): VirtualServer {
  const found = new Map<string, string>();
  const others: string[] = [];
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? "";
    if (word === "-s" || word === "-b" || word === "-p") found.set(word, words[++at] ?? "");
    else others.push(word);
  }
  const persistence = found.get("-p");
  return {
    ...key,
    scheduler: found.get("-s") ?? "wlc",
    flags: found.get("-b")?.split(",").sort() ?? [],
    ...(persistence !== undefined && { persistenceSeconds: Number(persistence) }),
    ...(others.length > 0 && { others }),
  };
}

const FORWARDING_OF_OPTION = { "-m": "masquerade", "-g": "route", "-i": "tunnel" } as const;

function parseDestination(words: readonly string[]): Destination {
  const weight = words.indexOf("-w");
  const forwarding = (["-m", "-g", "-i"] as const).find((option) => words.includes(option)) ?? "-g";
  return {
    ...realServer(words),
    weight: weight === -1 ? 1 : Number(words[weight + 1]),
    forwarding: FORWARDING_OF_OPTION[forwarding],
  };
}

function realServer(words: readonly string[]): DestinationKey {
  return parseAddressAndPort(words[words.indexOf("-r") + 1] ?? "");
}

/** `10.96.0.1:443` or `[fd00::1]:443`. */
function parseAddressAndPort(text: string): DestinationKey {
  const colon = text.lastIndexOf(":");
  const port = Number(text.slice(colon + 1));
  const host = text.slice(0, colon);
  const address = host.startsWith("[") && host.endsWith("]") ? host.slice(1, -1) : host;
  if (colon <= 0 || address === "" || !Number.isInteger(port))
    throw new Problem(`"${text}" is not an address and port`);
  return { address, port };
}
