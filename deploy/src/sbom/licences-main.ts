import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRunner } from "@fairlead/kernel";
import { repositoryDir } from "../paths.ts";
import { bundlePrograms } from "./bundle.ts";
import { licenceList } from "./licences.ts";

/** `pnpm run licences`: writes docs/licences.md. */
const scratch = await mkdtemp(join(tmpdir(), "fairlead-licences-"));
try {
  const { packages } = await bundlePrograms(createRunner(), scratch);
  await writeFile(join(repositoryDir, "docs/licences.md"), licenceList(packages));
} finally {
  await rm(scratch, { recursive: true, force: true });
}
