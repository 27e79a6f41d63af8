import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRunner } from "@fairlead/kernel";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { krewManifest } from "../src/release/krew.ts";
import { writeKrewFiles } from "../src/release/krew-files.ts";

const SHA256 = "0123456789abcdef".repeat(4);

test("the manifest names the release's archive, and the file that Node runs", () => {
  const { spec, metadata } = parse(krewManifest({ version: "1.2.3", sha256: SHA256 }));
  expect(metadata.name).toBe("fairlead");
  expect(spec.version).toBe("v1.2.3");
  // krew's index takes at most 50 characters there.
  expect(spec.shortDescription.length).toBeLessThanOrEqual(50);
  expect(spec.platforms).toMatchObject([
    {
      uri: "https://github.com/fairlead-dev/fairlead/releases/download/v1.2.3/kubectl-fairlead-1.2.3.tar.gz",
      sha256: SHA256,
      bin: "main.js",
    },
  ]);
});

test("the archive has what the manifest takes out of it, under the sum that it says", async () => {
  const dir = await mkdtemp(join(tmpdir(), "fairlead-krew-"));
  try {
    const runner = createRunner();
    const cli = join(dir, "cli");
    await mkdir(join(cli, "dist"), { recursive: true });
    await writeFile(join(cli, "dist/main.js"), "#!/usr/bin/env node\n", { mode: 0o755 });
    await writeFile(join(cli, "package.json"), '{ "type": "module" }');
    const [archive = "", manifest = ""] = await writeKrewFiles(runner, "1.2.3", join(dir, "krew"), cli);
    const { spec } = parse(await readFile(manifest, "utf8"));
    const sum = createHash("sha256")
      .update(await readFile(archive))
      .digest("hex");
    expect(spec.platforms[0].sha256).toBe(sum);
    const { stdout } = await runner.run(["tar", "--list", `--file=${archive}`]);
    expect(stdout.split("\n")).toEqual(
      expect.arrayContaining([`dist/${spec.platforms[0].bin}`, "package.json", "LICENSE"]),
    );
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
});
