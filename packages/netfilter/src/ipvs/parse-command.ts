import { Problem } from "../rule/problem.ts";
import type { Destination, DestinationKey, ServerCommand, VirtualServer, VirtualServerKey } from "./ipvs.ts";

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

const FORWARDING = { "-m": "masquerade", "-g": "route", "-i": "tunnel" } as const;

function parseDestination(words: readonly string[]): Destination {
  const weight = words.indexOf("-w");
  const forwarding = (["-m", "-g", "-i"] as const).find((option) => words.includes(option)) ?? "-g";
  return {
    ...realServer(words),
    weight: weight === -1 ? 1 : Number(words[weight + 1]),
    forwarding: FORWARDING[forwarding],
  };
}

function realServer(words: readonly string[]): DestinationKey {
  return parseAddressAndPort(words[words.indexOf("-r") + 1] ?? "");
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
  if (colon <= 0 || address === "" || !Number.isInteger(port))
    throw new Problem(`"${text}" is not an address and port`);
  return { address, port };
}
