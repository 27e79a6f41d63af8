/** Which iptables programs there are, and which of the two variants is in use. */

import type { IPFamily } from "../family.ts";
import { CommandError, lines, type Runner } from "../runner.ts";
import { explain, IptablesError, notInstalled } from "./error.ts";
import type { TablesThere, Variant } from "./tables-there.ts";

export interface Tools {
  readonly variant: Variant;
  readonly iptables: string;
  readonly save: string;
  readonly restore: string;
  /** `1.8.9` */
  readonly version: string;
}

/** The tools of a variant, looked for when the first of them is needed: that takes a process. */
export interface ToolsOf {
  readonly variant: Variant;
  /** @throws IptablesError of kind "not-installed" or "too-old" */
  readonly find: () => Promise<Tools>;
}

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

export function toolsFound(tools: Tools): ToolsOf {
  return { variant: tools.variant, find: async () => tools };
}

/**
 * Which variant the host uses, decided as Kubernetes' iptables-wrappers do: kubelet's chains in mangle, else who has
 * more rules, else nft. A wrong guess would leave the host's rules and ours in two places that do not know of each
 * other.
 */
export async function detectVariant(runner: Runner): Promise<Variant> {
  if ((await savedTables(runner, ["iptables-nft-save", "ip6tables-nft-save"], ["-t", "mangle"])).hint) return "nft";
  // `-t mangle` would make the kernel create the legacy table.
  const legacy = await savedTables(runner, ["iptables-legacy-save", "ip6tables-legacy-save"]);
  if (legacy.hint) return "legacy";
  // No variant has fewer than zero rules.
  if (legacy.rules === 0) return "nft";
  const nft = await savedTables(runner, ["iptables-nft-save", "ip6tables-nft-save"]);
  return legacy.rules > nft.rules ? "legacy" : "nft";
}

/** `iptables-restore -w` waits for its lock and names failing lines from here on. */
const OLDEST = [1, 8, 7] as const;

/**
 * The tools of a variant: `iptables-nft` or `iptables-legacy` where there are both, else a plain `iptables` that is of
 * it.
 *
 * @returns undefined where there are none
 */
async function findTools(runner: Runner, family: IPFamily, variant: Variant): Promise<Tools | undefined> {
  const plain = family === "IPv4" ? "iptables" : "ip6tables";
  for (const program of [`${plain}-${variant}`, plain]) {
    const found = await readVersion(runner, program);
    if (found === undefined || found.variant !== variant) continue;
    if (isOlder(found.version)) {
      throw new IptablesError(
        "too-old",
        `${program} ${found.version} is too old, at least ${OLDEST.join(".")} is needed`,
      );
    }
    return { ...found, iptables: program, save: `${program}-save`, restore: `${program}-restore` };
  }
  return undefined;
}

/** `iptables v1.8.9 (nf_tables)`; before 1.8 there was no variant in it, and it was legacy. */
async function readVersion(runner: Runner, program: string): Promise<Pick<Tools, "variant" | "version"> | undefined> {
  try {
    const { stdout } = await runner.run([program, "--version"]);
    const [, version, api] = /v(\d+(?:\.\d+)+)(?: \((\w+)\))?/.exec(stdout) ?? [];
    return version === undefined ? undefined : { version, variant: api === "nf_tables" ? "nft" : "legacy" };
  } catch (error) {
    if (error instanceof CommandError && error.reason === "not-found") return undefined;
    throw error;
  }
}

function isOlder(version: string): boolean {
  const parts = version.split(".").map(Number);
  for (const [index, least] of OLDEST.entries()) {
    const part = parts[index] ?? 0;
    if (part !== least) return part < least;
  }
  return false;
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
    // The first use reports other faults, and better.
    return explain(error).kind !== "no-table";
  }
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

/** Chains that kubelet makes in mangle so that others see which variant the host uses (KEP-3178). */
const HINT = /^:(?:KUBE-IPTABLES-HINT|KUBE-KUBELET-CANARY) /;

/** What the tools print: whether one of kubelet's chains is there, which is answer enough, and how many rules. */
async function savedTables(runner: Runner, tools: readonly string[], args: readonly string[] = []) {
  let rules = 0;
  for (const tool of tools) {
    for await (const line of quietLines(runner, tool, args)) {
      if (HINT.test(line)) return { hint: true, rules };
      if (line.startsWith("-")) rules += 1;
    }
  }
  return { hint: false, rules };
}

/** A tool that fails here (no such family, no such kernel API) has no rules. */
async function* quietLines(runner: Runner, tool: string, args: readonly string[]): AsyncGenerator<string, void, void> {
  try {
    yield* lines(runner.stream([tool, ...args]));
  } catch {
    return;
  }
}
