import { IP_FAMILIES, toEnd } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import type { ProgramText } from "@fairlead/inspect";
import {
  addressesOf,
  type IpvsObjects,
  ipvsEnvironment,
  type KernelState,
  restored,
  serversOf,
  setsOf,
} from "@fairlead/inspect";
import type { SavedRules } from "@fairlead/netfilter";
import { NFT_FAMILY, type NftTable, readTables, readTablesFromJson } from "@fairlead/netfilter/nft";
import type { Environment } from "@fairlead/trace";

/** The heading of a part: a comment with a program that plans are written for. */
const HEADING = /^# ((?:ip6?tables-restore|ipset|ipvsadm|ip|nft) .*)$/;

/** How `nft list` begins. */
const TABLE = /^(?:#.*\n)*table \S+ \S+ \{/;

/** How `nft -j list` begins. */
const JSON_LISTING = /^\s*\{\s*"nftables"\s*:/;

/** Whether a text that begins so is what `fairlead plan`, `nft list` or `nft -j list` prints. */
export function isPlanText(beginning: string): boolean {
  return HEADING.test(beginning.split("\n", 1)[0] ?? "") || isListing(beginning);
}

function isListing(text: string): boolean {
  return TABLE.test(text) || JSON_LISTING.test(text);
}

/** The families that such a text speaks of. */
export function familiesOfPlanText(text: string): readonly IPFamily[] {
  if (/^# ip6tables-restore /m.test(text)) return ["IPv6"];
  const ofTables = IP_FAMILIES.filter((family) => tablesIn(text, family).length > 0);
  return ofTables.length > 0 ? ofTables : ["IPv4"];
}

/**
 * The tables of one family in a text that `nft list`, `nft -j list` or `fairlead plan` printed.
 *
 * @throws SyntaxError when it begins as JSON and is not
 */
function tablesIn(text: string, family: IPFamily): readonly NftTable[] {
  const tables = JSON_LISTING.test(text) ? readTablesFromJson(JSON.parse(text)) : readTables(text);
  return tables.filter((table) => table.family === NFT_FAMILY[family]);
}

/** What a kernel holds, with rules whose places in a text are known. */
export interface PlannedState extends KernelState {
  readonly ruleSet: SavedRules;
  readonly nftables: readonly NftTable[];
}

/** What programs make of an empty node. */
export function stateOfParts(parts: readonly ProgramText[], family: IPFamily, host: Environment): PlannedState {
  const ruleSet = toEnd(restored(payloadIn(parts), family));
  const nftables = tablesIn(textTo("nft", parts), family);
  return { ruleSet, nftables, environment: ipvsEnvironment(host, ipvsObjectsIn(parts)) };
}

/** What goes to iptables-restore or ip6tables-restore, in its pieces. */
export function payloadIn(parts: readonly ProgramText[]): readonly string[] {
  return piecesOf(parts, (program) => program.endsWith("tables-restore"));
}

/** What the programs alongside them make. */
export function ipvsObjectsIn(parts: readonly ProgramText[]): IpvsObjects {
  return {
    servers: serversOf(textTo("ipvsadm", parts)),
    sets: setsOf(textTo("ipset", parts)),
    addresses: addressesOf(textTo("ip", parts)),
  };
}

function textTo(name: string, parts: readonly ProgramText[]): string {
  return piecesOf(parts, (program) => program === name).join("");
}

function piecesOf(parts: readonly ProgramText[], wanted: (program: string) => boolean): readonly string[] {
  return parts.flatMap(({ argv: [program], pieces }) => (wanted(program) ? pieces : []));
}

/**
 * As `stateOfParts`, of what `fairlead plan` prints; rules have the numbers of its lines.
 *
 * @throws RangeError and RuleParseError for what is no such text
 */
export function plannedState(text: string, family: IPFamily, host: Environment): PlannedState {
  return stateOfParts(partsOf(text), family, host);
}

/**
 * One part for each program, as long as the whole text: the lines of others, and comments, are left empty. What `nft`
 * lists has no heading.
 */
function partsOf(text: string): readonly ProgramText[] {
  const parts = new Map<string, string[]>();
  let program = isListing(text) ? "nft" : "";
  for (const [at, line] of text.split("\n").entries()) {
    program = HEADING.exec(line)?.[1]?.split(" ", 1)[0] ?? program;
    const lines = parts.get(program) ?? [];
    parts.set(program, lines);
    while (lines.length < at) lines.push("");
    lines.push(line.startsWith("#") ? "" : line);
  }
  return Array.from(parts, ([name, lines]) => ({ argv: [name], pieces: [`${lines.join("\n")}\n`] }));
}
