import { errorText } from "@fairlead/base";
import type { Runner } from "@fairlead/kernel";
import { createCleanProject } from "./clean-project.ts";
import type { PublishedPackage } from "./published.ts";

/** What came of trying one package as its users get it. */
export interface PackageCheck {
  readonly name: string;
  /** Absent: fine. */
  readonly problem?: string;
}

/** Apps by package: a program of theirs that prints its version. */
export const PROGRAMS: ReadonlyMap<string, string> = new Map([
  ["@fairlead/agent", "fairlead-proxy"],
  ["@fairlead/cli", "fairlead"],
]);

/**
 * Packs every package, installs all in a clean project, and runs each README's example and each app.
 *
 * @param registry has the packages; absent: they are packed here
 */
export async function checkPackages(
  runner: Runner,
  packages: readonly PublishedPackage[],
  registry?: string,
): Promise<PackageCheck[]> {
  const project = await createCleanProject(runner, packages, registry);
  try {
    const checks: PackageCheck[] = [];
    for (const item of packages) {
      const program = PROGRAMS.get(item.name);
      const problem = await problemOf(() =>
        program === undefined ? runLibrary(project, item) : runApp(project, program, item),
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

async function runApp(project: Project, program: string, { version }: PublishedPackage): Promise<string | undefined> {
  const printed = await project.runBin(program, "--version");
  return printed === `Fairlead v${version}\n` ? undefined : `--version printed ${printed}`;
}

async function problemOf(check: () => Promise<string | undefined>): Promise<string | undefined> {
  try {
    return await check();
  } catch (error) {
    return errorText(error);
  }
}
