import { fileURLToPath } from "node:url";
import type { Argv, Runner } from "@fairlead/kernel";
import { DNS_PORT, type DnsQuestion, type DnsRecord } from "../cluster.ts";

/** Debian package dnsmasq-base. */
export const DNS_PROGRAM = "dnsmasq";

/** A TXT record is made of strings of at most 255 bytes. */
const TEXT_PIECE = 200;
const RESOLVE = fileURLToPath(new URL("../../peer/resolve-main.ts", import.meta.url));

/**
 * A server that knows these names and nothing of the machine's; longer answers than 512 bytes it gives over TCP.
 *
 * @param hostsFile what `hostsText` gives: a name may have several addresses
 */
export function dnsServerArgv(records: readonly DnsRecord[], hostsFile: string): Argv {
  return [
    DNS_PROGRAM,
    // In the foreground, and as the user that it is started by.
    "--no-daemon",
    "--conf-file=/dev/null",
    "--no-resolv",
    "--no-hosts",
    `--addn-hosts=${hostsFile}`,
    "--no-poll",
    "--edns-packet-max=512",
    `--port=${DNS_PORT}`,
    ...records.flatMap(({ name, type, value }) =>
      type === "TXT" ? `--txt-record=${[name, ...pieces(value)].join(",")}` : [],
    ),
  ];
}

/** The addresses, as /etc/hosts has them. */
export function hostsText(records: readonly DnsRecord[]): string {
  return records.map(({ name, type, value }) => (type === "TXT" ? "" : `${value} ${name}\n`)).join("");
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
