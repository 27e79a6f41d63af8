import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRunner } from "@fairlead/kernel";
import { repositoryDir } from "../paths.ts";
import { bundlePrograms, licenseList } from "./bundle.ts";

/** `pnpm run licenses`: writes docs/licenses.md. */
const scratch = await mkdtemp(join(tmpdir(), "fairlead-licenses-"));
try {
  const { packages } = await bundlePrograms(createRunner(), scratch);
  await writeFile(join(repositoryDir, "docs/licenses.md"), licenseList(packages));
} finally {
  await rm(scratch, { recursive: true, force: true });
}
