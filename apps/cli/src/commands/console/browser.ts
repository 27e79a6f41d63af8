import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { errorText } from "@fairlead/base";
import type { Argv } from "@fairlead/kernel";
import type { Context } from "../../frame/context.ts";

/**
 * Opens an address in the user's browser. Other users of this machine see arguments of processes, so the address with
 * its token stands in a file that only this user reads.
 *
 * @returns what takes the file away again
 */
export async function openBrowser(url: string, { runner, warn }: Context): Promise<AsyncDisposable> {
  const folder = await mkdtemp(join(tmpdir(), "fairlead-console-"));
  const file = join(folder, "open.html");
  await writeFile(file, `<!doctype html><meta http-equiv="refresh" content="0; url=${url}">`, { mode: 0o600 });
  runner.run(opener(pathToFileURL(file).href)).catch((error: unknown) => {
    warn(`no browser could be started (${errorText(error)}): open the address yourself`);
  });
  return { [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) };
}

function opener(address: string): Argv {
  if (process.platform === "darwin") return ["open", address];
  return process.platform === "win32" ? ["explorer", address] : ["xdg-open", address];
}
