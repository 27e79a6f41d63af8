import { createRunner, type Runner } from "@fairlead/kernel";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import type { IpLines } from "./ip-lines.ts";

/** Runs programs inside a namespace. */
export function runnerIn(namespace: NetworkNamespace): Runner {
  return createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
}

/** @param flags `-4` or `-6`, for lines that do not say their family */
export async function applyLines(runner: Runner, lines: IpLines, flags: readonly string[] = []): Promise<void> {
  await runner.run(["ip", ...flags, "-batch", "-"], { input: `${lines.join("\n")}\n` });
}

const WRITE_SETTINGS = 'while read -r path value; do echo "$value" > "/proc/sys/$path" || exit 1; done';

/** Sets kernel settings, paths below /proc/sys; those of the network are the namespace's own. */
export async function applySettings(runner: Runner, settings: Readonly<Record<string, string>>): Promise<void> {
  const lines = Object.entries(settings).map(([path, value]) => `${path} ${value}\n`);
  await runner.run(["sh", "-c", WRITE_SETTINGS], { input: lines });
}
