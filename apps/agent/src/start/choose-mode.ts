import type { AgentConfig } from "@fairlead/config";
import type { Kernel } from "../host/kernel.ts";
import type { Log } from "../log/log.ts";
import type { Mode } from "../modes/mode.ts";
import { StartError } from "./start-error.ts";

export interface ChosenMode {
  readonly mode: Mode;
  /** Why it is not the one that was asked for. */
  readonly fallback?: string;
}

/**
 * The mode that this node runs in. One that the node cannot do becomes the one that it names for that, and a line says
 * so; a mode without a backend is never replaced by another one.
 *
 * @param modes those that there are
 * @throws StartError naming what is missing
 */
export async function chooseMode(
  modes: readonly Mode[],
  config: AgentConfig,
  kernel: Kernel,
  log: Log,
): Promise<ChosenMode> {
  const asked = config.mode;
  const mode = named(modes, asked);
  if (mode === undefined) {
    throw new StartError(
      `--proxy-mode=${asked} (mode in the configuration file): this version of Fairlead has no ${asked} mode; ` +
        `use ${names(modes)}`,
    );
  }
  const reason = await mode.whyNot?.(config, kernel);
  if (reason === undefined) return { mode };
  const { fallback } = mode;
  const instead = fallback?.allowed(config) === true ? named(modes, fallback.mode) : undefined;
  if (instead === undefined) {
    const flag = fallback === undefined ? "" : ` (and ${fallback.flag}=false)`;
    throw new StartError(`--proxy-mode=${asked}: not available on this node${flag}: ${reason}`);
  }
  log.warn(`${asked} mode is not available on this node; serving in ${instead.facts.name} mode`, { reason });
  return { mode: instead, fallback: reason };
}

function named(modes: readonly Mode[], name: string): Mode | undefined {
  return modes.find(({ facts }) => facts.name === name);
}

/** `iptables, ipvs or userspace` */
function names(modes: readonly Mode[]): string {
  const all = modes.map(({ facts }) => facts.name).sort();
  return [all.slice(0, -1).join(", "), ...all.slice(-1)].filter((text) => text !== "").join(" or ");
}
