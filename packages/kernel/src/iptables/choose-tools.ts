import type { IPFamily } from "../family.ts";
import { CommandError } from "../runner/command-error.ts";
import type { Runner } from "../runner/runner.ts";
import { lines } from "../runner/text.ts";
import { detectVariant } from "./detect.ts";
import { explain, notInstalled } from "./explain.ts";
import type { TablesThere } from "./tables-there.ts";
import { findTools, type Tools, type ToolsOf } from "./tools.ts";
import type { Variant } from "./variant.ts";

/** The tools of a family that are to be used. */
export interface ToolChoice {
  /** iptables or ip6tables. */
  readonly family: IPFamily;
  /** Default: as the host does. */
  readonly variant?: Variant;
  /** Reports what the host does, asked where both variants are installed. Default `detectVariant`. */
  readonly detect?: () => Promise<Variant>;
}

/**
 * Both variants installed, the host's own decides, unless that is nft and this kernel's nf_tables has no nat; one
 * installed, it is that one.
 *
 * @throws IptablesError of kind "not-installed", "too-old" or "no-permission"
 */
export async function chooseTools(
  runner: Runner,
  { family, variant: wanted, detect = () => detectVariant(runner) }: ToolChoice,
): Promise<Tools> {
  if (wanted !== undefined) {
    const tools = await findTools(runner, family, wanted);
    if (tools === undefined) throw notInstalled();
    return tools;
  }
  const [nft, legacy] = await bothTools(runner, family);
  if (nft === undefined || legacy === undefined) {
    const only = nft ?? legacy;
    if (only === undefined) throw notInstalled();
    return only;
  }
  const wish = await detect();
  return wish === "nft" && (await nftHasNat(runner, nft)) ? nft : legacy;
}

/**
 * Makes a chain and takes it back at once: some kernels' nf_tables has no nat, and says so only when it is written to.
 */
async function nftHasNat(runner: Runner, nft: Tools): Promise<boolean> {
  try {
    const input = "*nat\n:FAIRLEAD-PROBE - [0:0]\n-X FAIRLEAD-PROBE\nCOMMIT\n";
    await runner.run([nft.restore, "--noflush", "-w", "5"], { input });
    return true;
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    // What else is wrong is told, better, by the first use.
    return explain(error).kind !== "no-table";
  }
}

/**
 * The tools of all variants in which this network namespace has something. Legacy tables are looked for without making
 * the kernel create them. No tool is looked for where the kernel says what is there: what has to be removed may be
 * nothing.
 *
 * @param areThere asked first, as each tool is a process; default: nothing is known
 * @throws IptablesError of kind "not-installed" where there are no tools for what may be there
 */
export async function toolsInUse(
  runner: Runner,
  family: IPFamily,
  areThere: TablesThere = async () => undefined,
): Promise<readonly ToolsOf[]> {
  const [nftTables, legacyTables] = await Promise.all([areThere(family, "nft"), areThere(family, "legacy")]);
  if (nftTables !== undefined && legacyTables !== undefined) {
    const used = [nftTables ? "nft" : undefined, legacyTables ? "legacy" : undefined] as const;
    return used.filter((variant) => variant !== undefined).map((variant) => toolsLater(runner, family, variant));
  }
  const [nft, legacy] = await Promise.all([
    nftTables === false ? undefined : findTools(runner, family, "nft"),
    legacyTables === false ? undefined : findTools(runner, family, "legacy"),
  ]);
  if (nft === undefined && legacy === undefined) throw notInstalled();
  const hasLegacy = legacy !== undefined && (legacyTables ?? (await hasTables(runner, legacy)));
  return [nft, hasLegacy ? legacy : undefined].filter((tools) => tools !== undefined).map(toolsFound);
}

/** Tools that are known. */
export function toolsFound(tools: Tools): ToolsOf {
  return { variant: tools.variant, find: async () => tools };
}

function toolsLater(runner: Runner, family: IPFamily, variant: Variant): ToolsOf {
  let found: Promise<Tools> | undefined;
  return { variant, find: () => (found ??= chooseTools(runner, { family, variant })) };
}

async function bothTools(
  runner: Runner,
  family: IPFamily,
): Promise<readonly [nft: Tools | undefined, legacy: Tools | undefined]> {
  return Promise.all([findTools(runner, family, "nft"), findTools(runner, family, "legacy")]);
}

/** Without `-t` it prints what is there. Who may not look could not remove anything either. */
async function hasTables(runner: Runner, { save }: Tools): Promise<boolean> {
  try {
    for await (const line of lines(runner.stream([save]))) if (line.startsWith("*")) return true;
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
  }
  return false;
}
