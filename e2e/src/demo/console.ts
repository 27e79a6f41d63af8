import { execa } from "execa";
import { requireTool, tool } from "../tools/fairlead.ts";
import { CONSOLE_FLAGS } from "./services.ts";
import type { Stage } from "./stage.ts";

/** Opens the console on the manifests that the demo's agent follows, until the demo is to end. */
export async function openConsole({ manifests }: Stage, stopped: Promise<undefined>): Promise<void> {
  if (manifests === undefined) return;
  await requireTool();
  const argv = [tool, "console", "-f", manifests, "--node", "node-a", ...CONSOLE_FLAGS];
  const running = execa(process.execPath, argv, {
    stdin: "ignore",
    stdout: "inherit",
    stderr: "inherit",
    reject: false,
  });
  // Ctrl-C reaches both; whoever ends first takes the other along.
  await Promise.race([running, stopped]);
  running.kill("SIGTERM");
  await running;
}
