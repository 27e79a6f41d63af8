import { nftablesByHand, nftTable } from "../faults/nftables.ts";
import { everyKernel, type Mode } from "./mode.ts";

const tables = [nftTable("IPv4"), nftTable("IPv6")] as const;

/** The set by which other networks' addresses pass the drop of ClusterIPs that nobody has. */
export const LET_PASS = /\n\tset foreign-cluster-ips \{[\s\S]*?\n\t\}/;

/** Lines that are neither a rule nor elements. */
const FRAME = /^(?:table|chain|set|map|type|flags|comment|policy|size|timeout) |^\}$/;

export const nftablesMode: Mode = {
  name: "nftables",
  flags: [],
  kernelHas: everyKernel,
  keepsSource: true,
  emptyInternalLocal: "lost",
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
