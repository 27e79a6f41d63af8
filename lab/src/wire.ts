/** Lines for ip, and the kernel settings of a namespace. */

import { familyOf } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import { createRunner, type Runner } from "@fairlead/kernel";
import type { NetworkNamespace } from "@fairlead/kernel/netns";

/** Lines for `ip -batch -`. */
export type IpLines = readonly string[];

/** Everything; a batch line has no option that names the family. */
export const ANYWHERE: Readonly<Record<IPFamily, string>> = { IPv4: "0.0.0.0/0", IPv6: "::/0" };

/** A veth pair; the other end becomes `peer` in the namespace of process `pid`. */
export function veth(name: string, peer: string, pid: number): string {
  return `link add ${name} type veth peer name ${peer} netns ${pid}`;
}

export function up(name: string): string {
  return `link set ${name} up`;
}

/** `nodad`: an IPv6 address that can be used at once. */
export function address(name: string, cidr: string, scope?: "link"): string {
  const family = familyOf(cidr) === "IPv6" ? "nodad" : "";
  return `address add ${cidr} dev ${name} ${scope === undefined ? "" : `scope ${scope}`} ${family}`.trimEnd();
}

interface RouteFields {
  readonly via?: string;
  readonly dev?: string;
  readonly src?: string;
  readonly table?: number;
  readonly onlink?: boolean;
  /** Default unicast. */
  readonly type?: "local" | "unreachable";
}

export function route(destination: string, fields: RouteFields): string {
  const { type, via, dev, src, table, onlink } = fields;
  const words = ["route", "add", ...(type ? [type] : []), destination];
  if (via !== undefined) words.push("via", via);
  if (dev !== undefined) words.push("dev", dev);
  if (src !== undefined) words.push("src", src);
  if (table !== undefined) words.push("table", String(table));
  if (onlink) words.push("onlink");
  return words.join(" ");
}

/**
 * Packets that come in by `dev` are routed by `table`; for `ip -4 -batch -` or `ip -6 -batch -`, which say the family.
 */
export function ruleForInterface(dev: string, table: number): string {
  return `rule add iif ${dev} lookup ${table}`;
}

/** The end of a hang: of a busy machine a guest has so little that a shell's loop takes minutes. */
const LONGEST_MS = 600_000;

/** Runs programs inside a namespace. */
export function runnerIn(namespace: NetworkNamespace): Runner {
  return createRunner({ prefix: namespace.argvPrefix, env: namespace.env, timeoutMs: LONGEST_MS });
}

/** @param flags `-4` or `-6`, for lines that do not say their family */
export async function applyLines(runner: Runner, lines: IpLines, flags: readonly string[] = []): Promise<void> {
  await runner.run(["ip", ...flags, "-batch", "-"], { input: `${lines.join("\n")}\n` });
}

const WRITE_SETTINGS = 'while read -r path value; do echo "$value" > "/proc/sys/$path" || exit 1; done';

/** Sets kernel settings, paths below /proc/sys; those of the network are the namespace's own. */
export async function applySettings(runner: Runner, settings: Readonly<Record<string, string>>): Promise<void> {
  const lines = Object.entries(settings).map(([path, value]) => `${path} ${value}\n`);
  await runner.run(["sh", "-c", WRITE_SETTINGS], { input: lines });
}

/** Kernel settings of each namespace, as paths below /proc/sys. */
const EVERYWHERE = {
  // Addresses are unique here, and a test does not wait a second for them.
  "net/ipv6/conf/all/accept_dad": "0",
  "net/ipv6/conf/default/accept_dad": "0",
  "net/ipv6/conf/default/router_solicitations": "0",
  // What the kernel or a relay picks is neither a node port nor one that a peer asks for (peer/ports.ts).
  "net/ipv4/ip_local_port_range": "10000 29999",
} as const;

const ROUTER = {
  "net/ipv4/ip_forward": "1",
  "net/ipv6/conf/all/forwarding": "1",
  "net/ipv4/conf/all/rp_filter": "0",
  "net/ipv4/conf/default/rp_filter": "0",
  // A packet that goes out by the interface it came in by is meant to.
  "net/ipv4/conf/all/send_redirects": "0",
  "net/ipv4/conf/default/send_redirects": "0",
  // Every rejected packet is to be answered: no kind of error is limited, neither to one a second for a destination nor
  // to bursts of 50. The list of IPv6 has to name a kind: 255 is one that the kernel never sends.
  "net/ipv4/icmp_ratemask": "0",
  "net/ipv6/icmp/ratemask": "255",
} as const;

export function kernelSettings(namespace: string): Readonly<Record<string, string>> {
  return ["fabric", "node-a", "node-b"].includes(namespace) ? { ...EVERYWHERE, ...ROUTER } : EVERYWHERE;
}
