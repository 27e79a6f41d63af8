import { type AgentConfig, withMode } from "@fairlead/config";
import { MODES, type Mode } from "@fairlead/inspect";
import type { CommandInput } from "../../../frame/command.ts";
import { UsageError } from "../../../frame/errors.ts";
import { rememberedOptions } from "../../../migrate/cluster/state.ts";
import type { Survey } from "../../../migrate/survey/survey.ts";
import type { migrateOptions } from "../options.ts";
import { reportOptions } from "./options.ts";

type Values = CommandInput<typeof migrateOptions>["options"];

/** @throws UsageError for options of a report on a mode without one */
export function checkReportOptions(options: Values): void {
  const { "to-mode": toMode, file, apply, revert } = options;
  const reports = toMode !== undefined && !apply && !revert;
  const given = REPORT_OPTIONS.filter((name) => !isUnset(options[name]));
  if (!reports && given.length > 0) throw new UsageError(`--${given[0]}: is only valid with --to-mode, for its report`);
  if (reports && file.length === 0 && options.mode !== undefined) {
    throw new UsageError("--mode: is only valid with manifests (-f): the cluster's proxies say which mode they are in");
  }
}

const REPORT_OPTIONS = Object.keys(reportOptions) as (keyof typeof reportOptions)[];

function isUnset(value: Values[keyof typeof reportOptions]): boolean {
  return value === undefined || value === false || (Array.isArray(value) && value.length === 0);
}

/**
 * The mode in the place of kube-proxy's: what is asked for, else what an earlier run was asked for; undefined:
 * kube-proxy's own. The way back begins with that.
 */
export function wantedMode(
  { "to-mode": asked, revert }: Values,
  fairlead: unknown,
  { config }: Survey,
): Mode | undefined {
  if (revert) return undefined;
  const mode = asked ?? rememberedMode(fairlead);
  return mode === config?.mode ? undefined : mode;
}

function rememberedMode(fairlead: unknown): Mode | undefined {
  return MODES.find((one) => one === rememberedOptions(fairlead)["mode"]);
}

/** What serves now: kube-proxy's configuration, in the mode that an earlier run was asked for. */
export function runningConfig(config: AgentConfig, fairlead: unknown): AgentConfig {
  const mode = rememberedMode(fairlead);
  return mode === undefined ? config : withMode(config, mode);
}
