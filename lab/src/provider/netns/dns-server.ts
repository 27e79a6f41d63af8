import { fileURLToPath } from "node:url";
import type { Argv, Runner } from "@fairlead/kernel";
import { DNS_PORT, type DnsQuestion, type DnsRecord } from "../cluster.ts";

/** Debian package dnsmasq-base. */
export const DNS_PROGRAM = "dnsmasq";

/** A TXT record is made of strings of at most 255 bytes. */
const TEXT_PIECE = 200;
const RESOLVE = fileURLToPath(new URL("../../peer/resolve-main.ts", import.meta.url));

/** A server that knows these names and nothing of the machine's; longer answers than 512 bytes it gives over TCP. */
export function dnsServerArgv(records: readonly DnsRecord[]): Argv {
  return [
    DNS_PROGRAM,
    // In the foreground, and as the user that it is started by.
    "--no-daemon",
    "--conf-file=/dev/null",
    "--no-resolv",
    "--no-hosts",
    "--no-poll",
    "--edns-packet-max=512",
    `--port=${DNS_PORT}`,
    ...records.map(recordFlag),
  ];
}

function recordFlag({ name, type, value }: DnsRecord): string {
  if (type !== "TXT") return `--host-record=${name},${value}`;
  return `--txt-record=${[name, ...pieces(value)].join(",")}`;
}

function pieces(text: string): readonly string[] {
  const count = Math.ceil(text.length / TEXT_PIECE);
  return Array.from({ length: count }, (_, at) => text.slice(at * TEXT_PIECE, (at + 1) * TEXT_PIECE));
}

/** @throws Error with what the resolver said */
export async function lookUp(runner: Runner, server: string, { name, type }: DnsQuestion): Promise<readonly string[]> {
  const { stdout } = await runner.run([process.execPath, "--no-warnings", RESOLVE, server, name, type]);
  return JSON.parse(stdout);
}
