import { familyOf } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";

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

export interface RouteFields {
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
