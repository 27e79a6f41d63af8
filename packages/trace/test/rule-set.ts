import { type IPFamily, parseSave, type RuleSet } from "@fairlead/netfilter";
import {
  type Environment,
  type Landing,
  landings,
  type Outcome,
  type Packet,
  type Rules,
  trace,
} from "../src/index.ts";

/** A rule set out of tables that name their rules only: chains are declared as they come up. */
export function ruleSet(
  tables: Partial<Record<"raw" | "mangle" | "nat" | "filter", string>>,
  family: IPFamily = "IPv4",
): RuleSet {
  const text = Object.entries(tables).map(([table, rules]) => `*${table}\n${declared(rules)}${rules}COMMIT\n`);
  return parseSave(text.join(""), { family });
}

const BUILT_IN = /^(PREROUTING|INPUT|FORWARD|OUTPUT|POSTROUTING)$/;

function declared(rules: string): string {
  const own = new Set([...rules.matchAll(/^:(\S+)/gm)].map(([, name]) => name));
  const names = new Set([...rules.matchAll(/^-A (\S+)/gm)].map(([, name = ""]) => name));
  const missing = [...names].filter((name) => !own.has(name));
  return missing.map((name) => `:${name} ${BUILT_IN.test(name) ? "ACCEPT" : "-"} [0:0]\n`).join("");
}

/** A TCP packet from outside to 10.0.0.1:80 unless said otherwise. */
export function packet(fields: Partial<Packet> = {}): Packet {
  const base = { family: "IPv4", protocol: "tcp", source: "192.0.2.9", destination: "10.0.0.1" } as const;
  return { ...base, sport: 40_000, dport: 80, inInterface: "eth0", ...fields };
}

export function ownPacket(fields: Partial<Packet> = {}): Packet {
  const { inInterface: _, ...rest } = packet({ source: "10.201.0.10", ...fields });
  return rest;
}

export const HOST = {
  localAddresses: ["10.201.0.10", "fd00:201::10"],
  outInterface: (destination: string) => (destination.startsWith("10.144.") ? "cali1" : "eth0"),
} satisfies Environment;

/** The one way of a packet whose rules choose nothing at random. */
export function only(rules: RuleSet, sent: Packet, environment: Environment = HOST): Outcome {
  const [outcome, ...more] = trace(rules, sent, environment);
  if (outcome === undefined || more.length > 0) throw new Error(`${more.length + 1} ways instead of one`);
  return outcome;
}

/** `verdict destination`, with masq and the percentage where they say something. */
export function places(rules: RuleSet | Rules, sent: Packet, environment: Environment = HOST): string[] {
  return landings(trace(rules, sent, environment)).map(placeText);
}

function placeText({ verdict, destination, masqueraded, probability }: Landing): string {
  const parts = [verdict === "accept" ? "→" : verdict, destination, masqueraded ? "masq" : "", percent(probability)];
  return parts.filter((part) => part !== "").join(" ");
}

function percent(probability: number): string {
  return probability > 0.999999 ? "" : `${(probability * 100).toFixed(1)}%`;
}
