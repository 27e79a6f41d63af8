import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { folderPrefix } from "@fairlead/lab/support/run-inventory";
import { requireTool, tool } from "@fairlead/lab/tools/fairlead";
import { execa } from "execa";
import { openPage } from "./open-page.ts";
import { CONSOLE_FLAGS } from "./services.ts";
import type { DemoEnvironment } from "./stage.ts";
import { openWayIn } from "./way-in.ts";

/**
 * Opens the console on the manifests that the demo's agent follows, until the demo is to end. Where the demo has a
 * node, the console runs there and compares the node's kernel with its plan; this machine's port of the same number
 * leads to it.
 */
export async function openConsole({ manifests, node }: DemoEnvironment, stopped: Promise<undefined>): Promise<void> {
  if (manifests === undefined) return;
  await requireTool();
  await using opened = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), `${folderPrefix}-console-`));
  opened.defer(() => rm(folder, { recursive: true, force: true }));
  const looking = ["-f", manifests, "--node", "node-a", "--no-open", ...CONSOLE_FLAGS];
  const argv = [process.execPath, tool, "console", ...looking];
  const wayIn = node && opened.use(await openWayIn(node.namespace, folder));
  const live = node && wayIn ? ["--live", `--mode=${node.mode}`, `--port=${wayIn.port}`] : [];
  const [program = "", ...rest] = [...(node?.namespace.argvPrefix ?? []), ...argv, ...live];
  const running = execa(program, rest, {
    env: { ...node?.namespace.env },
    stdin: "ignore",
    stdout: ["pipe", "inherit"],
    stderr: "inherit",
    buffer: false,
    reject: false,
  });
  // Ctrl-C reaches both; whoever ends first takes the other along.
  const ended = Promise.race([running, stopped]);
  const address = once(createInterface(running.stdout), "line").then(([line]) => openPage(String(line), folder));
  await Promise.race([address, ended]);
  await ended;
  running.kill("SIGTERM");
  await running;
}
