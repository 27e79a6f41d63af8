import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { CommandError } from "@fairlead/kernel";
import { tool } from "@fairlead/lab/tools/fairlead";
import { execa } from "execa";
import { able } from "../needs.ts";
import type { Scene } from "../scene.ts";
import type { Ended } from "./outcome.ts";

const ASK = fileURLToPath(new URL("../../../../lab/src/tools/console-ask-main.ts", import.meta.url));

/** Runs a command line of `fairlead` to its end, where the API server is. */
export async function runTool({ cluster: { apiServer } }: Scene, argv: readonly string[]): Promise<Ended> {
  try {
    const { stdout, stderr } = await apiServer.run(["env", "NO_COLOR=1", process.execPath, tool, ...argv], {
      timeoutMs: 0,
    });
    return { code: 0, out: stdout, err: stderr };
  } catch (error) {
    if (!(error instanceof CommandError) || error.exitCode === undefined) throw error;
    return { code: error.exitCode, out: error.stdout, err: error.stderr };
  }
}

/**
 * Opens a console until its page has what the path gives, or the terminal says that it may not read what the page
 * needs.
 *
 * @returns code 3 where the page goes on waiting for services
 */
export async function runConsole(scene: Scene, argv: readonly string[], path: string): Promise<Ended> {
  const { argvPrefix, env } = able(scene.cluster.apiServer.namespace);
  const [program = "", ...rest] = [...argvPrefix, "setpriv", "--pdeathsig", "KILL", process.execPath, tool, ...argv];
  const child = execa(program, rest, { env: { ...env, NO_COLOR: "1" }, stdin: "ignore", reject: false });
  const ended = child.then(() => "");
  const line = once(createInterface(child.stdout), "line").then(([text]) => String(text));
  const refused = new Promise<"refused">((resolve) => {
    createInterface(child.stderr).on("line", (text) => WITHOUT_SERVICES.test(text) && resolve("refused"));
  });
  const url = await Promise.race([line, ended]);
  const page = url === "" ? undefined : await Promise.race([asked(scene, url, path), refused, ended]);
  child.kill("SIGTERM");
  const { exitCode = 0, stdout, stderr } = await child;
  return { code: page === "refused" ? 3 : exitCode, out: stdout, err: stderr };
}

const WITHOUT_SERVICES = /^user \S+ may not (?:list|watch) (?:services|endpointslices)/;

async function asked({ cluster: { apiServer } }: Scene, url: string, path: string): Promise<"answered"> {
  const script = [process.execPath, "--no-warnings", "--conditions=@fairlead/source", ASK, url, path] as const;
  // Without an answer the console has ended, or says why.
  await apiServer.run(script, { timeoutMs: 0 }).catch(() => new Promise(() => {}));
  return "answered";
}
