import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRunner } from "@fairlead/kernel";
import { bundlePrograms, thirdPartyNotices } from "../sbom/bundle.ts";
import { ARCHES } from "./arch.ts";
import { fillWithNode, fillWithPrograms } from "./layers.ts";

/**
 * For the Dockerfile: puts Node and the programs into a folder for each architecture, `amd64` and `arm64`, in the
 * folder that is its argument, as they stand in the image.
 */
const [dir] = process.argv.slice(2);
if (dir === undefined) throw new Error("usage: agent-root FOLDER");
const runner = createRunner();
const scratch = await mkdtemp(join(tmpdir(), "fairlead-agent-"));
try {
  const programs = await bundlePrograms(runner, scratch);
  const notices = await thirdPartyNotices(programs.packages);
  for (const arch of ARCHES) {
    const [root, work] = [join(dir, arch), join(scratch, arch)];
    await mkdir(work);
    await fillWithNode(runner, root, arch, work);
    await fillWithPrograms(root, arch, programs, notices);
  }
} finally {
  await rm(scratch, { recursive: true, force: true });
}
