import { mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createRunner, lines, type Runner } from "@fairlead/kernel";
import { createNamespace, type NetworkNamespace, namespaceSupport } from "@fairlead/kernel/netns";
import { endpointSlice, service } from "@fairlead/testkit";
import { afterAll, beforeAll, describe, expect } from "vitest";
import { BUNDLE, emptyFolder } from "./bundle.ts";

/** Why the bundle cannot run on a kernel here; undefined: it can. */
export async function whyNoKernel(): Promise<string | undefined> {
  const support = await namespaceSupport();
  if (!support.ok) return support.reason;
  return createRunner()
    .run(["iptables", "--version"])
    .then(
      () => undefined,
      () => "iptables is not installed",
    );
}

const IN_FOLDER = 'cd "$1" && shift && "$@" 2>&1; echo "exit $?"';
const reason = await whyNoKernel();

/** A network namespace, and a folder in which the bundle runs there. */
export interface BundleNode {
  readonly dir: () => string;
  readonly inside: () => Runner;
  /** Writes a file of the folder `manifests`. */
  manifest(name: string, text: string): Promise<void>;
  /** Writes a file of the folder. */
  file(name: string, text: string): Promise<void>;
  /**
   * The lines of a bundle's run as they come, its exit code the last of them: `exit 0`.
   *
   * @param behind another program, which execs it
   */
  running(flags: readonly string[], behind?: readonly string[]): AsyncGenerator<string>;
  /** All lines of such a run. */
  toEnd(flags: readonly string[], behind?: readonly string[]): Promise<readonly string[]>;
  /**
   * Runs the agent until the rules of IPv4 are there and `meanwhile` is over, and ends it.
   *
   * @returns its log
   */
  served(
    flags: readonly string[],
    meanwhile?: (log: readonly string[]) => Promise<void>,
    behind?: readonly string[],
  ): Promise<readonly string[]>;
  /** Removes all that an agent wrote. */
  cleanUp(): Promise<void>;
}

/** Tests of the bundle on one such node: skipped with the reason where there can be none. */
export function onBundleNode(name: string, define: (node: BundleNode) => void): void {
  describe.skipIf(reason !== undefined)(`${name}${reason === undefined ? "" : ` (${reason})`}`, () => {
    let folder = "";
    let namespace: NetworkNamespace;
    beforeAll(async () => {
      namespace = await createNamespace();
      folder = await emptyFolder();
      await mkdir(join(folder, "manifests"));
    });
    afterAll(() => namespace.dispose());

    const inside = () => createRunner({ prefix: namespace.argvPrefix, env: namespace.env, timeoutMs: 0 });
    // In one go: of a file that is being written the agent may read that there is nothing in it.
    const write = async (name: string, text: string) => {
      await writeFile(join(folder, "next"), text);
      await rename(join(folder, "next"), join(folder, name));
    };
    const running: BundleNode["running"] = (flags, behind = []) => {
      // Where a test gives up, the shell is ended, and the agent with it.
      const program = ["setpriv", "--pdeathsig", "KILL", ...behind, process.execPath, BUNDLE, ...flags] as const;
      const argv = ["sh", "-c", IN_FOLDER, "sh", folder, ...program] as const;
      return lines(inside().stream(argv, { timeoutMs: 0 }));
    };
    define({
      dir: () => folder,
      inside,
      file: write,
      manifest: (file, text) => write(join("manifests", file), text),
      running,
      async toEnd(flags, behind) {
        const log: string[] = [];
        for await (const line of running(flags, behind)) log.push(line);
        return log;
      },
      async served(flags, meanwhile = async () => {}, behind = []) {
        const log: string[] = [];
        for await (const line of running(flags, behind)) {
          log.push(line);
          if (!isNowInPlace(log)) continue;
          await meanwhile(log);
          process.kill(pidOf(log), "SIGTERM");
        }
        expect(log.at(-1), log.join("\n")).toBe("exit 0");
        return log;
      },
      async cleanUp() {
        await inside().run([process.execPath, BUNDLE, "--cleanup", "--state-dir="]);
      },
    });
  });
}

/** What the log says when the rules of IPv4, the first family, are there; after a sync that failed it says so again. */
const IN_PLACE = '"Rules are in place" ipFamily="IPv4"';

/** Whether the last line of a log is the first that says so. */
export function isNowInPlace(log: readonly string[]): boolean {
  return log.findIndex((line) => line.includes(IN_PLACE)) === log.length - 1;
}

/** Of the agent whose first lines these are. */
export function pidOf(log: readonly string[]): number {
  const pid = log.flatMap((line) => / pid="?(\d+)/.exec(line)?.[1] ?? [])[0];
  if (pid === undefined) throw new Error(`no pid in ${log.join("\n")}`);
  return Number(pid);
}

export function manifestOf(name: string, clusterIP: string, address: string): string {
  const ports = [{ name: "http", port: 80 }];
  const items = [
    service(name, { clusterIPs: [clusterIP], ports }),
    endpointSlice(name, { service: name, family: "IPv4", ports, endpoints: [{ address }] }),
  ];
  return JSON.stringify({ apiVersion: "v1", kind: "List", items });
}
