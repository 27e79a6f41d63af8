import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { expectReadmeExample } from "@fairlead/tooling/readme";
import { expect, test } from "vitest";
import { NativeCodeError } from "../src/index.ts";

const packageDir = join(import.meta.dirname, "..");

test("koffi and its compiled code are of one version, which the package names exactly", async () => {
  const workspace = await readFile(join(packageDir, "../../pnpm-workspace.yaml"), "utf8");
  const versions = Array.from(
    workspace.matchAll(/^ {2}"?(?:koffi|@koromix\/koffi-[\w-]+)"?: (\d.*)$/gm),
    ([, one]) => one,
  );
  const koffi = createRequire(import.meta.url).resolve("koffi");
  const { version } = JSON.parse(await readFile(join(koffi, "../package.json"), "utf8"));
  expect(versions).toEqual([version, version, version, version]);
  const { dependencies, optionalDependencies } = JSON.parse(await readFile(join(packageDir, "package.json"), "utf8"));
  // By itself it asks for a build script, and for the compiled code of twenty machines.
  expect(Object.keys({ ...dependencies, ...optionalDependencies })).not.toContain("koffi");
  expect(Object.keys(optionalDependencies)).toEqual([
    "@koromix/koffi-linux-arm64",
    "@koromix/koffi-linux-x64",
    "@koromix/koffi-win32-x64",
  ]);
});

test("what is missing without it is named", () => {
  const cause = new Error("Cannot find the native Koffi module; did you bundle it correctly?");
  const error = new NativeCodeError(cause);
  expect(error.message).toContain(
    `@koromix/koffi-${process.platform}-${process.arch}; install it with the optional dep`,
  );
  expect(error).toMatchObject({ name: "NativeCodeError", cause });
});

test("README example", () => expectReadmeExample(import.meta.dirname));
