import { createReadStream } from "node:fs";
import { errorText } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import { LazySaveParser, type SavedRules } from "@fairlead/netfilter";
import type { NftTable } from "@fairlead/netfilter/nft";
import type { Environment } from "@fairlead/trace";
import type { Context } from "../frame/context.ts";
import { CommandFailure } from "../frame/errors.ts";
import { familiesOfPlanText, isPlanText, plannedState } from "./plan-text.ts";

/** Rules with what else the text says of their host. */
export interface ReadRules {
  readonly rules: SavedRules;
  readonly nftables: readonly NftTable[];
  /** Sets, virtual servers and addresses of a plan for ipvs mode. */
  readonly environment: Environment;
}

/**
 * The rules of a file, or of standard input (`-`).
 *
 * @param file what iptables-save, ip6tables-save, nft list, nft -j list or fairlead plan printed
 * @throws CommandFailure when they cannot be read
 */
export async function readRules(
  file: string,
  family: IPFamily,
  context: Pick<Context, "progress" | "readStandardInput">,
): Promise<ReadRules> {
  const source = `--rules=${file}`;
  try {
    return await context.progress(`reading ${source}`, () => readText(rulesText(file, context), family));
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

async function* rulesText(
  file: string,
  { readStandardInput }: Pick<Context, "readStandardInput">,
): AsyncGenerator<string> {
  if (file === "-") yield Buffer.from(await readStandardInput()).toString("utf8");
  else yield* createReadStream(file, { encoding: "utf8", highWaterMark: 1 << 20 });
}
