import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { requireAgent } from "@fairlead/lab/agent";
import { controlPlanePrograms } from "@fairlead/lab/control-plane/programs";
import { ownPrefix } from "@fairlead/lab/support/run-inventory";
import { type Bed, openBed } from "../cluster/bed.ts";
import { fairlead, writeConfig } from "../proxy/measured-proxy.ts";
import { startProxy } from "../proxy/running.ts";
import { settledAgent } from "../proxy/settled-agent.ts";
import { toolPath, type Variant } from "../proxy/tools.ts";
import { freshRulesOf } from "./measure-run.ts";
import { readNftRules } from "./nft-rules.ts";
import type { Mode } from "./options.ts";
import { type RulesReader, readRules } from "./rules.ts";
import type { Setting } from "./setting.ts";

/** Says what is being done, a line each. */
export type Progress = (line: string) => void;

/** What a benchmark on this machine's kernel is opened with. */
export interface BedOptions {
  readonly mode: Mode;
  readonly variant: Variant;
  /** Version of the control plane. */
  readonly kubernetes: string;
  /** Seconds for a proxy's first sync. */
  readonly patience: number;
}

/** A control plane without services, and how proxies are started alongside it. */
export interface Prepared {
  readonly bed: Bed;
  readonly startSettings: Setting["startSettings"];
  readonly readRules: RulesReader;
  /** Asks a fresh Fairlead for its rules, once for each step. */
  freshRules(): Setting["freshRules"];
}

/** How the rules of each mode are read. */
const readers: Readonly<Record<Mode, (variant: Variant) => RulesReader>> = {
  iptables: (variant) => (node) => readRules(node, variant),
  nftables: () => readNftRules,
};

/** Opens a bed for as long as `use` takes; nothing is left after it. */
export async function withBed<T>(
  { mode, variant, kubernetes, patience }: BedOptions,
  progress: Progress,
  use: (prepared: Prepared) => Promise<T>,
): Promise<T> {
  await requireAgent();
  const programs = await controlPlanePrograms(kubernetes, progress);
  const folder = await mkdtemp(join(tmpdir(), `${await ownPrefix("fairlead-bench")}-`));
  try {
    await using bed = await openBed(programs, folder);
    const configFile = await writeConfig(folder, mode, bed.controlPlane.proxyKubeconfig);
    const path = await toolPath(join(folder, "bin"), variant);
    const agent = await settledAgent(folder);
    const startSettings = { variant, configFile, agent, path, patience: patience * 1000 };
    const readRules = readers[mode](variant);
    const freshRules = () =>
      freshRulesOf(
        () => startProxy(bed, { ...startSettings, subject: fairlead() }),
        ({ node }) => readRules(node),
      );
    return await use({ bed, startSettings, readRules, freshRules });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
