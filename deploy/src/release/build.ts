import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Runner } from "@fairlead/kernel";
import { agentDir, repositoryDir } from "../paths.ts";
import { bundleAgent } from "../sbom/bundle.ts";
import { thirdPartyNotices } from "../sbom/notices.ts";

/** Builds what is published, as far as it isn't built, and puts the licences of what the agent bundles beside it. */
export async function buildPackages(runner: Runner): Promise<void> {
  const filters = ["--filter=./packages/*", "--filter=@fairlead/agent"];
  await runner.run(
    ["pnpm", "--dir", repositoryDir, "exec", "turbo", "run", "build", ...filters, "--output-logs=none"],
    {
      timeoutMs: 1_200_000,
    },
  );
  const scratch = await mkdtemp(join(tmpdir(), "fairlead-release-"));
  try {
    const { packages } = await bundleAgent(runner, scratch);
    await writeFile(join(agentDir, "dist/THIRD-PARTY-LICENCES.txt"), await thirdPartyNotices(packages));
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}
