import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { AgentSettings } from "../../agent/agent-process.ts";
import type { AgentStart } from "../node.ts";

const PRELOAD = new URL("../../agent/stepped-clock.ts", import.meta.url).href;

/** In a mount namespace of its own, which ends with the agent: the folder is a disk of one page, and that is taken. */
const FULL_DISK =
  'mount -t tmpfs -o size=4k tmpfs "$1" && head -c 4096 /dev/zero > "$1/everything" && shift && exec "$@"';

/** What an agent may be given alongside its flags. @param folder of the agent's own, for its state and its clock */
export async function startSettings(
  folder: string,
  { stateDiskFull = false, ownClock = false, env = {}, openFiles, memory, bundle }: AgentStart,
): Promise<Omit<AgentSettings, "flags">> {
  const state = stateFolder(folder, memory);
  await mkdir(state, { recursive: true });
  await stepClockTo(folder, 0);
  const clock = ownClock ? { NODE_OPTIONS: `--import=${PRELOAD}`, FAIRLEAD_E2E_CLOCK: clockFile(folder) } : {};
  return {
    ...(bundle !== undefined && { bundle }),
    env: { ...clock, ...env },
    behind: [
      ...(openFiles === undefined ? [] : ["prlimit", `--nofile=${openFiles}:${openFiles}`]),
      ...(stateDiskFull ? ["unshare", "--mount", "sh", "-c", FULL_DISK, "sh", state] : []),
    ],
  };
}

/** @param memory `AgentStart.memory` */
export function stateFolder(folder: string, memory?: string): string {
  return join(folder, memory === undefined ? "state" : `state-${memory}`);
}

function clockFile(folder: string): string {
  return join(folder, "clock");
}

/** For an agent that has a clock of its own, which takes it over on SIGWINCH. */
export async function stepClockTo(folder: string, offsetMs: number): Promise<void> {
  await writeFile(clockFile(folder), String(offsetMs));
}
