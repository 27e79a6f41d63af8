import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Runner } from "@fairlead/kernel";
import { agentDir, cliDir, repositoryDir } from "../paths.ts";
import { bundleApp } from "../sbom/bundle.ts";
import { thirdPartyNotices } from "../sbom/notices.ts";

/** Builds what is published, as far as it isn't built, and puts the licenses of what the apps bundle alongside them. */
export async function buildPackages(runner: Runner): Promise<void> {
  const filters = ["--filter=./packages/*", "--filter=./apps/*"];
  await runner.run(
    ["pnpm", "--dir", repositoryDir, "exec", "turbo", "run", "build", ...filters, "--output-logs=none"],
    {
      timeoutMs: 1_200_000,
    },
  );
  for (const app of [agentDir, cliDir]) await addNotices(runner, app);
}

async function addNotices(runner: Runner, app: string): Promise<void> {
  const scratch = await mkdtemp(join(tmpdir(), "fairlead-release-"));
  try {
    const { packages } = await bundleApp(runner, app, scratch);
    await writeFile(join(app, "dist/THIRD-PARTY-LICENSES.txt"), await thirdPartyNotices(packages));
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}
