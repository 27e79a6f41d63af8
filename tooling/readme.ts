import { execFile } from "node:child_process";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/**
 * Runs the first `ts` block of a package's README as the reader would and gives what it printed beside what the block
 * says it prints: its closing comment lines that begin with `//=> `.
 *
 * @param packageDir absolute folder of the package; the example runs in it, so it imports the package by its name
 * @throws Error when the README has no such block, the block promises nothing, or it fails
 */
export async function runReadmeExample(packageDir: string): Promise<{ printed: string; promised: string }> {
  const readme = await readFile(join(packageDir, "README.md"), "utf8");
  const example = /^```ts\n(.*?)^```/ms.exec(readme)?.[1];
  if (example === undefined) throw new Error(`${packageDir}/README.md has no \`\`\`ts block`);
  const promised = [...example.matchAll(/^\/\/=> ?(.*)$/gm)].map((line) => line[1]).join("\n");
  if (promised === "") throw new Error(`the example of ${packageDir}/README.md promises no output (//=> lines)`);
  const file = join(packageDir, `.readme-example-${process.pid}.ts`);
  await writeFile(file, example);
  try {
    const { stdout } = await run(process.execPath, ["--conditions=@fairlead/source", "--no-warnings", file], {
      cwd: packageDir,
      timeout: 30_000,
    });
    return { printed: stdout.trimEnd(), promised };
  } finally {
    await rm(file, { force: true });
  }
}
