import type { ForwardingPlan } from "@fairlead/core";
import type { NftTable } from "@fairlead/netfilter/nft";
import { type ProgramText, ProgramTexts } from "./modes/empty-node.ts";
import { type Mode, modeOf } from "./modes/index.ts";
import type { DryRunSettings } from "./modes/mode.ts";

export interface DryRunOptions extends DryRunSettings {
  readonly mode: Mode;
}

/** What the agent would give to which programs, in its order, on a node that was never programmed. */
export async function dryRun(plan: ForwardingPlan, options: DryRunOptions): Promise<readonly ProgramText[]> {
  const texts = new ProgramTexts();
  await modeOf(options.mode).dryRun(plan, options, texts);
  return texts.all();
}

/** The tables of nftables that the agent would have made then, in steps; none in modes that work without. */
export function* dryTables(plan: ForwardingPlan, options: DryRunOptions): Generator<void, readonly NftTable[], void> {
  const { tables } = modeOf(options.mode);
  return tables === undefined ? [] : yield* tables(plan, options);
}
