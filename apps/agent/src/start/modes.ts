import type { ProxyMode } from "@fairlead/config";
import { StartError } from "./start-error.ts";

/**
 * A mode without a backend is never replaced by another one in silence.
 *
 * @throws StartError naming the mode and those that there are
 */
export function checkMode(mode: ProxyMode): void {
  if (mode === "iptables") return;
  throw new StartError(
    `--proxy-mode=${mode} (mode in the configuration file): this version of Fairlead has no ${mode} mode; use iptables`,
  );
}
