import { writeFileSync } from "node:fs";
import { errorChainText } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import { prepareConntrack } from "../conntrack/prepare.ts";
import { type Kernel, openedOnce } from "../host/kernel.ts";
import { realKernel } from "../host/real.ts";
import type { Log } from "../log/log.ts";
import { createLog } from "../log/pino.ts";
import { modes } from "../modes/index.ts";
import { chooseMode } from "./choose-mode.ts";
import { cleanUp, cleanUpInstance } from "./cleanup.ts";
import { openFamilies } from "./families.ts";
import { heapSnapshotSignal } from "./heap-snapshot.ts";
import { runLocal } from "./local.ts";
import { runOnNode } from "./node.ts";
import { lockNode } from "./node-lock.ts";
import { StartError } from "./start-error.ts";

/** Does what the process was started for; resolves to its exit code. */
export async function runAction(
  config: AgentConfig,
  warnings: readonly string[],
  { out, err }: { readonly out: (text: string) => void; readonly err: (text: string) => void },
): Promise<number> {
  const log = createLog(config.logging);
  for (const warning of warnings) log.warn(warning);
  try {
    return await act(config, log, out);
  } catch (error) {
    if (error instanceof StartError) err(`${error.message}\n`);
    else log.error("Fairlead cannot continue; exiting", { reason: errorChainText(error) });
    return 1;
  }
}

async function act(config: AgentConfig, log: Log, out: (text: string) => void): Promise<number> {
  const { action } = config;
  if (action.kind === "write-config") {
    writeConfig(action.path, action.text);
    return 0;
  }
  if (action.kind === "run") heapSnapshotSignal(config, log);
  if (action.kind === "run" && config.userspace.only) return runLocal(config, log, out);
  const kernel = openedOnce(realKernel(log));
  if (action.kind === "cleanup") {
    await lockNode(config, log);
    return config.serviceProxyName === ""
      ? cleanUp(modes, kernel, log)
      : cleanUpInstance(modes, kernel, config.serviceProxyName, log);
  }
  if (action.kind === "run") return runOnNode(config, kernel, log);
  await initialize(config, kernel, log);
  log.info("System initialized and --init-only specified");
  return 0;
}

async function initialize(config: AgentConfig, kernel: Kernel, log: Log): Promise<void> {
  const { mode } = await chooseMode(modes, config, kernel, log);
  await openFamilies(mode, kernel, config, log);
  await prepareConntrack(config.conntrack, kernel.sysctl, log);
  await mode.prepare?.(config, kernel, log);
}

function writeConfig(path: string, text: string): void {
  try {
    writeFileSync(path, text);
  } catch (error) {
    throw new StartError(`--write-config-to=${path}: cannot be written: ${errorChainText(error)}`, { cause: error });
  }
}
