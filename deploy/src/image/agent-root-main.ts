import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRunner } from "@fairlead/kernel";
import { bundlePrograms } from "../sbom/bundle.ts";
import { thirdPartyNotices } from "../sbom/notices.ts";
import { fillWithPrograms } from "./agent-layer.ts";

/** For the Dockerfile: puts the programs' files into the folder that is its argument, as they stand in the image. */
const [dir] = process.argv.slice(2);
if (dir === undefined) throw new Error("usage: agent-root FOLDER");
const scratch = await mkdtemp(join(tmpdir(), "fairlead-agent-"));
try {
  const programs = await bundlePrograms(createRunner(), scratch);
  await fillWithPrograms(dir, programs, await thirdPartyNotices(programs.packages));
} finally {
  await rm(scratch, { recursive: true, force: true });
}
