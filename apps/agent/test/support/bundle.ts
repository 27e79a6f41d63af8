/** The agent's bundle as a process of its own, which programs nothing: it relays in userspace mode on local ports. */

import { mkdtemp, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRunner, lines } from "@fairlead/kernel";

export const BUNDLE = join(import.meta.dirname, "../../dist/main.js");
export const CONTROLLER = join(import.meta.dirname, "../../dist/controller.js");

export function emptyFolder(): Promise<string> {
  return mkdtemp(join(tmpdir(), "fairlead-"));
}

/** The first line that a program says behind it is its process's id. */
const WITH_ID = ["sh", "-c", 'umask 0; echo "$$"; exec "$@" 2>&1', "sh"] as const;

export function started(...program: readonly string[]): AsyncGenerator<string> {
  return lines(createRunner().stream([...WITH_ID, ...program], { timeoutMs: 0 }));
}

/** What the bundle is started with to relay on local ports the services of a manifest or folder. */
export function onLocalPorts(manifests: string, stateDir = ""): readonly string[] {
  return ["--proxy-mode=userspace", "--userspace-only", `--manifests=${manifests}`, `--state-dir=${stateDir}`];
}

/** MB of a process's resident memory, at most since its start. */
export async function mostMegabytes(pid: number): Promise<number> {
  const [, kilobytes] = /^VmHWM:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, "utf8")) ?? [];
  if (kilobytes === undefined) throw new Error(`/proc/${pid}/status has no VmHWM`);
  return Number(kilobytes) / 1_000;
}
