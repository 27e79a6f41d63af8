import type { Runner } from "@fairlead/kernel";
import { createCleanProject } from "./clean-project.ts";
import { type PublishedPackage, publishedPackages } from "./published.ts";

/** What came of trying one package as its users get it. */
export interface PackageCheck {
  readonly name: string;
  /** Absent: fine. */
  readonly problem?: string;
}

const AGENT = "@fairlead/agent";

/** Packs every package, installs all in a clean project, and runs each README's example and the agent. */
export async function checkPackages(runner: Runner): Promise<PackageCheck[]> {
  const packages = await publishedPackages();
  const project = await createCleanProject(runner, packages);
  try {
    const checks: PackageCheck[] = [];
    for (const item of packages) {
      const problem = await problemOf(() =>
        item.name === AGENT ? runAgent(project, item) : runLibrary(project, item),
      );
      checks.push({ name: item.name, ...(problem === undefined ? {} : { problem }) });
    }
    return checks;
  } finally {
    await project.remove();
  }
}

type Project = Awaited<ReturnType<typeof createCleanProject>>;

async function runLibrary(project: Project, item: PublishedPackage): Promise<string | undefined> {
  const { printed, promised } = await project.runExample(item);
  return printed === promised ? undefined : `the example printed\n${printed}\nand promises\n${promised}`;
}

async function runAgent(project: Project, { version }: PublishedPackage): Promise<string | undefined> {
  const printed = await project.runBin("fairlead-proxy", "--version");
  return printed === `Fairlead v${version}\n` ? undefined : `--version printed ${printed}`;
}

async function problemOf(check: () => Promise<string | undefined>): Promise<string | undefined> {
  try {
    return await check();
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
