import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import { relayArgv } from "@fairlead/lab/control-plane/control-plane";
import { startDaemon } from "@fairlead/lab/support/processes";
import { folderPrefix } from "@fairlead/lab/support/run-inventory";
import { requireTool, tool } from "@fairlead/lab/tools/page-reader";
import { execa } from "execa";
import { CONSOLE_FLAGS, type DemoEnvironment } from "./stage.ts";

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
  // Ctrl-C reaches both; the one that ends first ends the other.
  const ended = Promise.race([running, stopped]);
  const address = once(createInterface(running.stdout), "line").then(([line]) => openPage(String(line), folder));
  await Promise.race([address, ended]);
  await ended;
  running.kill("SIGTERM");
  await running;
}

/**
 * Opens an address with a token in the user's browser, if there is one: by a file that only this user reads, as other
 * users see arguments of processes.
 *
 * @param folder is removed by its maker
 */
async function openPage(url: string, folder: string): Promise<void> {
  const file = join(folder, "open.html");
  await writeFile(file, `<!doctype html><meta http-equiv="refresh" content="0; url=${url}">`, { mode: 0o600 });
  const program = process.platform === "darwin" ? "open" : "xdg-open";
  const { failed } = await execa(program, [pathToFileURL(file).href], { stdio: "ignore", reject: false });
  if (failed) console.log("No browser could be started: open the address yourself.");
}

/** A port of 127.0.0.1 that leads to the same one inside a namespace. */
interface WayIn extends AsyncDisposable {
  readonly port: number;
}

/**
 * By a unix socket, which is reached from every network namespace: none of them gets an interface for it.
 *
 * @param folder for that socket and a log
 */
async function openWayIn(namespace: NetworkNamespace, folder: string): Promise<WayIn> {
  await using opened = new AsyncDisposableStack();
  const path = join(folder, "console.sock");
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(path);
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one);
      one.pipe(other);
      one.on("error", () => other.destroy());
      one.on("close", () => {
        sockets.delete(one);
        other.destroy();
      });
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  opened.defer(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, "close");
  });
  const bound = server.address();
  const port = bound !== null && typeof bound === "object" ? bound.port : 0;
  const argv = relayArgv(path, `127.0.0.1:${port}`);
  const relay = await startDaemon(namespace, { name: "way-in", argv, logFile: join(folder, "way-in.log") });
  opened.defer(() => relay.stop());
  const kept = opened.move();
  return { port, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}
