import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRunner, lines, type Runner } from "@fairlead/kernel";
import { createNamespace, type NetworkNamespace } from "@fairlead/kernel/netns";
import { afterAll, beforeAll, describe } from "vitest";
import { whyNoKernel } from "./real-kernel.ts";

export const BUNDLE = join(import.meta.dirname, "../../dist/main.js");
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
}

/** Tests of the bundle on one such node: skipped with the reason where there can be none. */
export function onBundleNode(name: string, define: (node: BundleNode) => void): void {
  describe.skipIf(reason !== undefined)(`${name}${reason === undefined ? "" : ` (${reason})`}`, () => {
    let folder = "";
    let namespace: NetworkNamespace;
    beforeAll(async () => {
      namespace = await createNamespace();
      folder = await mkdtemp(join(tmpdir(), "fairlead-bundle-"));
      await mkdir(join(folder, "manifests"));
    });
    afterAll(async () => {
      await namespace.dispose();
      await rm(folder, { recursive: true });
    });

    const inside = () => createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
    define({
      dir: () => folder,
      inside,
      file: (name, text) => writeFile(join(folder, name), text),
      manifest: (file, text) => writeFile(join(folder, "manifests", file), text),
      running: (flags, behind = []) => {
        // Where a test gives up, the shell is ended, and the agent with it.
        const program = ["setpriv", "--pdeathsig", "KILL", ...behind, process.execPath, BUNDLE, ...flags] as const;
        const argv = ["sh", "-c", IN_FOLDER, "sh", folder, ...program] as const;
        return lines(inside().stream(argv, { timeoutMs: 0 }));
      },
    });
  });
}
