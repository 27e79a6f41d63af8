/** Rules from a text in place of a kernel: a listing of iptables or nft, or what `fairlead plan` printed. */

import { createReadStream } from "node:fs";
import { errorText, IP_FAMILIES, toEnd } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import {
  addressesOf,
  type IpvsObjects,
  ipvsEnvironment,
  type KernelState,
  type ProgramText,
  restored,
  serversOf,
  setsOf,
} from "@fairlead/inspect";
import { LazySaveParser, RuleParseError, type RuleSet, renderRule, type SavedRules } from "@fairlead/netfilter";
import { NFT_FAMILY, type NftTable, readTables } from "@fairlead/netfilter/nft";
import type { Environment } from "@fairlead/trace";
import type { Context } from "../frame/context.ts";
import { CommandFailure } from "../frame/errors.ts";

/** What a kernel holds, or a text says that it does; rules whose places in a text are known. */
export interface HeldRules extends KernelState {
  readonly ruleSet: SavedRules;
  readonly nftables: readonly NftTable[];
}

/**
 * The rules of a file, or of standard input (`-`).
 *
 * @param file what iptables-save, ip6tables-save, nft list or fairlead plan printed
 */
export async function readRules(
  file: string,
  family: IPFamily,
  context: Pick<Context, "progress" | "readStandardInput">,
): Promise<HeldRules> {
  const source = `--rules=${file}`;
  try {
    return await context.progress(`reading ${source}`, () => readText(rulesText(file, context), family));
  } catch (error) {
    throw rulesFailure(source, error);
  }
}

/** Why a text is not rules, and which command prints rules where another one's output was given. */
export function rulesFailure(source: string, error: unknown): CommandFailure {
  const line = error instanceof RuleParseError ? error.text : "";
  const hint = OTHER_OUTPUTS.find(([begins]) => begins.test(line))?.[1];
  return new CommandFailure(`${source}: ${errorText(error)}${hint === undefined ? "" : `; ${hint}`}`, { cause: error });
}

const OTHER_OUTPUTS: readonly (readonly [begins: RegExp, hint: string])[] = [
  [
    /^Chain \S+ \(/,
    "this is iptables -L, which leaves out what rules match: give the output of iptables-save (IPv6: ip6tables-save)",
  ],
  [
    /^(?:IP Virtual Server version|Prot +LocalAddress:Port|-A +-[tuf] )/,
    "this is ipvsadm, which has no rules: give the output of iptables-save, or look at the node with --on NODE",
  ],
  [/^\s*\{\s*"nftables"/, "this is nft -j: give the output of nft list ruleset, without -j"],
  [
    /^\{"HostCompute(?:Network|Endpoints)"/,
    "this is a plan of kernelspace mode, through which no packet can be followed",
  ],
  [/^(?:```|~~~)/, "this is Markdown: leave out its lines with ``` and give what is between them"],
  [/^-[PN] /, "this is iptables -S, of one table and without its name: give the output of iptables-save"],
  [/^(?:create|add) \S+ \S/, "this is ipset, which has no rules: give the output of iptables-save"],
  [/^\S*[$#] ?\S/, "this is copied from a terminal: leave out the prompt and give what the command printed"],
  [/^(?:\[\d+:\d+\] )?-[AI] /, "this is a part of iptables-save: give all of its output, with *nat and COMMIT"],
];

/** The heading of a part: a comment with a program that plans are written for. */
const HEADING = /^# ((?:ip6?tables-restore|ipset|ipvsadm|ip|nft) .*)$/;

/** Whether a text that begins so is what `fairlead plan` or `nft list` prints. */
export function isPlanText(beginning: string): boolean {
  return HEADING.test(beginning.split("\n", 1)[0] ?? "") || TABLE.test(beginning);
}

export function familiesOfPlanText(text: string): readonly IPFamily[] {
  if (/^# ip6tables-restore /m.test(text)) return ["IPv6"];
  const ofTables = IP_FAMILIES.filter((family) => tablesIn(text, family).length > 0);
  return ofTables.length > 0 ? ofTables : ["IPv4"];
}

/** What programs make of an empty node. */
export function stateOfParts(parts: readonly ProgramText[], family: IPFamily, host: Environment): HeldRules {
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

/** As `stateOfParts`, of what `fairlead plan` prints; rules have the numbers of its lines. */
export function plannedState(text: string, family: IPFamily, host: Environment): HeldRules {
  return stateOfParts(partsOf(text), family, host);
}

/**
 * Whether the rules that a node holds count packets by nfacct objects, which depends on its kernel: a plan that is
 * compared with them does the same, since it makes no difference to packets.
 */
export function hasCounters(rules: RuleSet): boolean {
  return [...rules.values()].some(({ chains }) =>
    ["KUBE-FORWARD", "KUBE-NODEPORTS"].some((name) =>
      chains.get(name)?.rules.some((rule) => renderRule(rule).includes(" --nfacct-name ")),
    ),
  );
}

/** A listing is parsed as it comes; a plan is taken as a whole. */
async function readText(pieces: AsyncIterable<string>, family: IPFamily): Promise<HeldRules> {
  const parser = new LazySaveParser({ family });
  let plan: string | undefined;
  let begun = false;
  let blank = true;
  for await (const piece of pieces) {
    if (!begun && isPlanText(piece)) plan = "";
    begun = true;
    blank &&= piece.trim() === "";
    if (plan === undefined) parser.push(piece);
    else plan += piece;
  }
  if (blank) throw new RangeError("is empty: run iptables-save, or nft list ruleset, as root");
  return plan === undefined ? { ruleSet: parser.end(), nftables: [], environment: {} } : planIn(plan, family);
}

function planIn(text: string, family: IPFamily): HeldRules {
  const own = familiesOfPlanText(text);
  if (!own.includes(family)) throw new RangeError(`rules of ${own.join(" and ")}, and the packet is ${family}`);
  return plannedState(text, family, {});
}

async function* rulesText(
  file: string,
  { readStandardInput }: Pick<Context, "readStandardInput">,
): AsyncGenerator<string> {
  if (file === "-") yield Buffer.from(await readStandardInput()).toString("utf8");
  else yield* createReadStream(file, { encoding: "utf8", highWaterMark: 1 << 20 });
}

/** How `nft list` begins. */
const TABLE = /^(?:#.*\n)*table \S+ \S+ \{/;

/** The tables of one family in a text that `nft list` or `fairlead plan` printed. */
function tablesIn(text: string, family: IPFamily): readonly NftTable[] {
  return readTables(text).filter((table) => table.family === NFT_FAMILY[family]);
}

function textTo(name: string, parts: readonly ProgramText[]): string {
  return piecesOf(parts, (program) => program === name).join("");
}

function piecesOf(parts: readonly ProgramText[], wanted: (program: string) => boolean): readonly string[] {
  return parts.flatMap(({ argv: [program], pieces }) => (wanted(program) ? pieces : []));
}

/**
 * One part for each program, as long as the whole text: the lines of others, and comments, are left empty. What `nft`
 * lists has no heading.
 */
function partsOf(text: string): readonly ProgramText[] {
  const parts = new Map<string, string[]>();
  let program = TABLE.test(text) ? "nft" : "";
  for (const [at, line] of text.split("\n").entries()) {
    program = HEADING.exec(line)?.[1]?.split(" ", 1)[0] ?? program;
    const lines = parts.get(program) ?? [];
    parts.set(program, lines);
    while (lines.length < at) lines.push("");
    lines.push(line.startsWith("#") ? "" : line);
  }
  return Array.from(parts, ([name, lines]) => ({ argv: [name], pieces: [`${lines.join("\n")}\n`] }));
}
