import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createContext, runInContext } from "node:vm";
import { readmeExample } from "@fairlead/tooling/readme";
import { expect, test } from "vitest";
import { repositoryDir } from "../src/paths.ts";
import { anyEnginePackages, bundleForBrowser } from "../src/release/check.ts";

const bundle = (code: string, folder: string) =>
  bundleForBrowser(code, { resolveDir: join(repositoryDir, folder), conditions: ["@fairlead/source"] });

const anyEngine = anyEnginePackages(await readFile(join(repositoryDir, "docs/packages.md"), "utf8"));

test.each(anyEngine)("@fairlead/%s needs no module of Node", async (name) => {
  const text = await bundle(`export * from "@fairlead/${name}";`, `packages/${name}`);
  expect(text).toContain("export {");
});

test("that there are such packages", () => {
  expect(anyEngine).toEqual(expect.arrayContaining(["core", "netfilter", "trace"]));
});

/** What an engine has that is not Node, as far as the examples use it. */
function engine(print: (...parts: readonly unknown[]) => void) {
  return createContext({
    console: { log: print },
    TextEncoder,
    TextDecoder,
    btoa,
    performance,
    setTimeout,
    clearTimeout,
  });
}

test.each(["base", "core", "endpoint-filter", "netfilter", "networks", "trace"])(
  "the example of @fairlead/%s runs without Node",
  async (name) => {
    const { code, promised } = await readmeExample(join(repositoryDir, "packages", name));
    const lines: string[] = [];
    const program = await bundle(code, `packages/${name}`);
    const context = engine((...parts) => lines.push(parts.map(String).join(" ")));
    await runInContext(`(async () => {${program}\n})()`, context);
    expect(lines.join("\n")).toBe(promised);
  },
);

test("work in slices gives other work its turn without Node", async () => {
  const lines: unknown[] = [];
  const code =
    'import { inSlices } from "@fairlead/base";\nconsole.log(await inSlices([1, 2].values(), { budget: 0 }));';
  const program = await bundle(code, "packages/base");
  await runInContext(
    `(async () => {${program}\n})()`,
    engine((line) => lines.push(line)),
  );
  expect(lines).toEqual([undefined]);
});
