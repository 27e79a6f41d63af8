import type { AgentConfig } from "@fairlead/config";
import type { Kernel } from "../host/kernel.ts";
import type { Log } from "../log/log.ts";
import { whyNoIpvs } from "../modes/ipvs.ts";
import { StartError } from "./start-error.ts";

/** The modes that there are backends for. */
export type ServedMode = "iptables" | "ipvs" | "userspace";

export interface ChosenMode {
  readonly mode: ServedMode;
  /** Why it is not the one that was asked for. */
  readonly fallback?: string;
}

/**
 * The mode that this node runs in. Ipvs mode on a kernel without IPVS becomes iptables mode, and says so; a mode without a
 * backend is never replaced by another one.
 *
 * @throws StartError naming what is missing
 */
export async function chooseMode(config: AgentConfig, kernel: Kernel, log: Log): Promise<ChosenMode> {
  const { mode } = config;
  if (mode === "iptables" || mode === "userspace") return { mode };
  if (mode !== "ipvs") {
    throw new StartError(
      `--proxy-mode=${mode} (mode in the configuration file): this version of Fairlead has no ${mode} mode; use iptables, ipvs or userspace`,
    );
  }
  const reason = await whyNoIpvs(config, kernel);
  if (reason === undefined) return { mode };
  if (!config.ipvs.fallback) {
    throw new StartError(`--proxy-mode=ipvs: this node cannot do it (and --ipvs-fallback=false): ${reason}`);
  }
  log.warn("This node cannot do ipvs mode: serving in iptables mode instead", { reason });
  return { mode: "iptables", fallback: reason };
}
