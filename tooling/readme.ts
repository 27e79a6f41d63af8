import { strictEqual } from "node:assert";
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** A package's example: its code, and what it says it prints. */
export interface ReadmeExample {
  readonly code: string;
  readonly promised: string;
}

/** The first `ts` block of a package's README; its closing comment lines that begin with `//=> ` are what it prints. */
export async function readmeExample(packageDir: string): Promise<ReadmeExample> {
  const readme = await readFile(join(packageDir, "README.md"), "utf8");
  const code = /^```ts\n(.*?)^```/ms.exec(readme)?.[1];
  if (code === undefined) throw new Error(`${packageDir}/README.md has no \`\`\`ts block`);
  const promised = [...code.matchAll(/^\/\/=> ?(.*)$/gm)].map((line) => line[1]).join("\n");
  if (promised === "") throw new Error(`the example of ${packageDir}/README.md promises no output (//=> lines)`);
  return { code, promised };
}

/**
 * Runs a package's example as the reader would: in the package's folder, so that it imports the package by its name.
 *
 * @param testDir absolute folder of the package's tests
 * @throws AssertionError when it prints something else than it says
 */
export async function expectReadmeExample(testDir: string): Promise<void> {
  const packageDir = dirname(testDir);
  const { code, promised } = await readmeExample(packageDir);
  // Not in a file: one that a killed run leaves would stay.
  const options = ["--conditions=@fairlead/source", "--no-warnings", "--input-type=module-typescript"];
  const { stdout } = await run(process.execPath, [...options, "--eval", code], { cwd: packageDir });
  strictEqual(stdout.trimEnd(), promised);
}
