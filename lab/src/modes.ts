/** What clients see that differs between modes, and what a mode needs to run. */

import type { Argv } from "@fairlead/kernel";
import { type ByHand, iptablesByHand, nftablesByHand, nftTable } from "./faults.ts";
import { hasIpvs } from "./support/machine.ts";

/** What the test ground knows of a mode: what clients see that differs between modes, and what it takes to run one. */
export interface Mode {
  /** As `--proxy-mode` has it. */
  readonly name: string;
  /** Flags of Fairlead's alongside those of every mode. */
  readonly flags: readonly string[];
  /** Whether this kernel has what the mode needs; where not, clusters of it are in User-Mode Linux. */
  readonly kernelHas: () => Promise<boolean>;
  /** Whether endpoints see the client where Kubernetes keeps its address; else they see the node. */
  readonly keepsSource: boolean;
  /** Whether nodes without an endpoint drop what comes from outside with `externalTrafficPolicy: Local`. */
  readonly dropsExternalLocal: boolean;
  /** The addresses of a node at which node ports are served, with the defaults. */
  readonly nodePorts: "all, and 127.0.0.1" | "all" | "primary";
  /** It has the addresses of services on a device of the node. */
  readonly ownsAddresses?: true;
  /** Whether connections go on whose service is left to another network. */
  readonly keepsLeft: boolean;
  /** How specs take single promises away; absent: they cannot. */
  readonly byHand?: ByHand;
  /** How long what is broken by hand may stay so, as the test ground runs its agents: a look, and time to write. */
  readonly repairMs: number;
  /** How its rules are read, and shown to people. */
  readonly rules: ModeRules;
}

/** IPv4 only. */
export function servesLocalhost({ nodePorts }: Mode): boolean {
  return nodePorts === "all, and 127.0.0.1";
}

interface ModeRules {
  /** Commands that list them, of both families. */
  readonly listings: readonly Argv[];
  readonly linesOf: (listing: string) => readonly string[];
  /** Whether the same cluster leads to the same lines, whatever it was before. */
  readonly canonical: boolean;
  /** The tool that people look at them with says its version. */
  readonly version: Argv;
  /** What a user who looks around types. */
  readonly look: string;
}

const iptablesRules: ModeRules = {
  listings: [["iptables-save"], ["ip6tables-save"]],
  linesOf: (listing) => listing.split("\n").filter((line) => line.startsWith("-A ")),
  canonical: true,
  version: ["iptables", "--version"],
  look: "iptables -t nat -L -vn",
};

const iptablesMode: Mode = {
  name: "iptables",
  flags: [],
  kernelHas: everyKernel,
  keepsSource: true,
  dropsExternalLocal: true,
  nodePorts: "all, and 127.0.0.1",
  keepsLeft: true,
  byHand: iptablesByHand,
  repairMs: 5_000,
  rules: iptablesRules,
};

const ipvsMode: Mode = {
  name: "ipvs",
  flags: [],
  kernelHas: hasIpvs,
  keepsSource: true,
  // They lead to endpoints elsewhere, whose answers pass them by unless the pod network masquerades.
  dropsExternalLocal: false,
  nodePorts: "all",
  ownsAddresses: true,
  // Its address is not the node's anymore, and only what is for the node meets IPVS.
  keepsLeft: false,
  repairMs: 30_000,
  rules: {
    listings: [...iptablesRules.listings, ["ipvsadm", "-Sn"]],
    linesOf: iptablesRules.linesOf,
    canonical: true,
    version: ["ipvsadm", "--version"],
    look: "ipvsadm -ln",
  },
};

const tables = [nftTable("IPv4"), nftTable("IPv6")] as const;

/** Lines that are neither a rule nor elements. */
const FRAME = /^(?:table|chain|set|map|type|flags|comment|policy|size|timeout) |^\}$/;

const nftablesMode: Mode = {
  name: "nftables",
  flags: [],
  kernelHas: everyKernel,
  keepsSource: true,
  dropsExternalLocal: true,
  nodePorts: "primary",
  keepsLeft: true,
  byHand: nftablesByHand,
  repairMs: 1_000,
  rules: {
    listings: tables.map((table) => ["nft", "list", "table", ...table.split(" ")] as const),
    linesOf: (listing) =>
      listing
        .replace(LET_PASS, "")
        .split("\n")
        .map((line) => line.trim())
        .filter((line) => line !== "" && !FRAME.test(line)),
    // Places of endpoints, and which services share a chain, depend on the order in which they came.
    canonical: false,
    version: ["nft", "--version"],
    look: `nft list table ${tables[0]}`,
  },
};

const userspaceMode: Mode = {
  name: "userspace",
  // On a busy machine an answer may take longer than the 250 ms after which a relay forgets the client.
  flags: ["--udp-timeout=10s"],
  kernelHas: everyKernel,
  // The relay asks on behalf of all clients.
  keepsSource: false,
  dropsExternalLocal: true,
  nodePorts: "all, and 127.0.0.1",
  keepsLeft: true,
  repairMs: 5_000,
  rules: iptablesRules,
};

/** The modes that the test ground knows. */
export const modes: readonly Mode[] = [iptablesMode, ipvsMode, nftablesMode, userspaceMode];

export function modeNamed(wanted: string): Mode {
  const found = modes.find(({ name }) => name === wanted);
  if (found !== undefined) return found;
  throw new Error(`no mode ${wanted}; there are ${modes.map(({ name }) => name).join(", ")}`);
}

/** The set by which other networks' addresses pass the drop of ClusterIPs that no service has. */
export const LET_PASS = /\n\tset foreign-cluster-ips \{[\s\S]*?\n\t\}/;

async function everyKernel(): Promise<boolean> {
  return true;
}
