import { createReadStream } from "node:fs";
import { errorText } from "@fairlead/base";
import { CommandError, detectVariant, type IPFamily, type Runner } from "@fairlead/kernel";
import { LazySaveParser, type SavedRules } from "@fairlead/netfilter";
import type { NftTable } from "@fairlead/netfilter/nft";
import type { Environment } from "@fairlead/trace";
import type { Context } from "../frame/context.ts";
import { CommandFailure } from "../frame/errors.ts";
import { tablesIfSeen } from "./nft-tables.ts";
import { familiesOfPlanText, isPlanText, plannedState } from "./plan-text.ts";

/** Milliseconds that a listing of very many rules may take. */
const LISTING_TIMEOUT = 120_000;

/** Rules of both kinds. */
export interface LiveRules {
  readonly rules: SavedRules;
  /** Tables of nftables alongside those of iptables; absent: they cannot be listed. */
  readonly nftables?: readonly NftTable[];
}

/**
 * The rules of a kernel: those of iptables in the variant that its host uses, and the tables of nftables. A host that
 * has only nft needs no iptables.
 *
 * @throws CommandError when they cannot be listed; RuleParseError for what is no listing
 */
export async function liveRules(runner: Runner, family: IPFamily): Promise<LiveRules> {
  const nftables = await tablesIfSeen(runner, family);
  try {
    return { rules: await iptablesRules(runner, family), ...(nftables && { nftables }) };
  } catch (error) {
    if (nftables === undefined || !(error instanceof CommandError) || error.reason !== "not-found") throw error;
    return { rules: new Map(), nftables };
  }
}

async function iptablesRules(runner: Runner, family: IPFamily): Promise<SavedRules> {
  const tool = `${family === "IPv4" ? "iptables" : "ip6tables"}-${await detectVariant(runner)}-save`;
  return parse(runner.stream([tool], { timeoutMs: LISTING_TIMEOUT }), family);
}

/** Rules with what else the text says of their host. */
export interface ReadRules extends LiveRules {
  /** Sets, virtual servers and addresses of a plan for ipvs mode. */
  readonly environment: Environment;
}

/**
 * The rules of a file, of standard input (`-`), or of a kernel.
 *
 * @param file what iptables-save, ip6tables-save, nft list, nft -j list or fairlead plan printed; undefined: the kernel
 * is asked
 * @throws CommandFailure when they cannot be read
 */
export async function readRules(
  file: string | undefined,
  family: IPFamily,
  runner: Runner,
  context: Pick<Context, "progress" | "readStandardInput">,
): Promise<ReadRules> {
  const source = file === undefined ? "rules" : `--rules=${file}`;
  const read = async () =>
    file === undefined
      ? { ...(await liveRules(runner, family)), environment: {} }
      : readText(rulesText(file, context), family);
  try {
    return await context.progress(`reading ${source}`, read);
  } catch (error) {
    throw new CommandFailure(`${source}: ${errorText(error)}`, { cause: error });
  }
}

/** A listing is parsed as it comes; a plan is taken as a whole. */
async function readText(pieces: AsyncIterable<string>, family: IPFamily): Promise<ReadRules> {
  const parser = new LazySaveParser({ family });
  let plan: string | undefined;
  let begun = false;
  for await (const piece of pieces) {
    if (!begun && isPlanText(piece)) plan = "";
    begun = true;
    if (plan === undefined) parser.push(piece);
    else plan += piece;
  }
  return plan === undefined ? { rules: parser.end(), nftables: [], environment: {} } : planIn(plan, family);
}

function planIn(text: string, family: IPFamily): ReadRules {
  const own = familiesOfPlanText(text);
  if (!own.includes(family)) throw new RangeError(`rules of ${own.join(" and ")}, and the packet is ${family}`);
  const { ruleSet, nftables, environment } = plannedState(text, family, {});
  return { rules: ruleSet, nftables, environment };
}

async function parse(pieces: AsyncIterable<string>, family: IPFamily): Promise<SavedRules> {
  const parser = new LazySaveParser({ family });
  for await (const piece of pieces) parser.push(piece);
  return parser.end();
}

async function* rulesText(
  file: string,
  { readStandardInput }: Pick<Context, "readStandardInput">,
): AsyncGenerator<string> {
  if (file === "-") yield Buffer.from(await readStandardInput()).toString("utf8");
  else yield* createReadStream(file, { encoding: "utf8", highWaterMark: 1 << 20 });
}
