import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRunner } from "@fairlead/kernel";
import { repositoryDir } from "../paths.ts";
import { bundlePrograms, bundleWindows, licenseList, packagesOf } from "./bundle.ts";

/** `pnpm run licenses`: writes docs/licenses.md. */
const scratch = await mkdtemp(join(tmpdir(), "fairlead-licenses-"));
try {
  const { agent, cli } = await bundlePrograms(createRunner(), scratch);
  const windows = await bundleWindows(createRunner(), join(scratch, "windows"));
  await writeFile(join(repositoryDir, "docs/licenses.md"), licenseList(packagesOf([agent, cli, windows])));
} finally {
  await rm(scratch, { recursive: true, force: true });
}
