/** `pnpm --filter @fairlead/deploy run windows`: makes the archive for Windows nodes. */

import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRunner } from "@fairlead/kernel";
import { installWindowsNode } from "../image/windows-node.ts";
import { artifactsDir, repositoryDir } from "../paths.ts";
import { bundleWindows, thirdPartyNotices } from "../sbom/bundle.ts";
import { ARCHIVE, windowsArchive } from "./archive.ts";

const folder = await mkdtemp(join(tmpdir(), "windows-"));
try {
  const bundle = await bundleWindows(createRunner(), join(folder, "bundle"));
  const archive = windowsArchive({
    bundle,
    node: await readFile(await installWindowsNode(folder)),
    license: await readFile(join(repositoryDir, "LICENSE")),
    notices: await thirdPartyNotices(bundle.packages),
  });
  await mkdir(artifactsDir, { recursive: true });
  await writeFile(join(artifactsDir, ARCHIVE), archive);
  process.stdout.write(`${join(artifactsDir, ARCHIVE)}: ${archive.length} bytes\n`);
} finally {
  await rm(folder, { recursive: true, force: true });
}
