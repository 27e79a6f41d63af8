import { access, constants } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { type GoProgram, goBuild } from "./go-build.ts";
import { kubernetesVersion } from "./versions.ts";

/** Programs that are cached together. */
export interface ProgramSet<Name extends string> {
  readonly programs: Readonly<Record<Name, Omit<GoProgram, "name">>>;
  /** Of the cache, for a full version of Kubernetes: whatever else decides what the programs are is a part of it. */
  readonly folder: (version: string) => string;
}

/** Where each one is. */
export type ProgramPaths<Name extends string> = Readonly<Record<Name, string>>;

/** What is built once is kept below it. */
export function cacheFolder(name: string): string {
  const { XDG_CACHE_HOME = "" } = process.env;
  const cache = XDG_CACHE_HOME === "" ? join(homedir(), ".cache") : XDG_CACHE_HOME;
  return join(cache, "fairlead", name);
}

/**
 * Where a program is taken from: a folder that the user names in KUBEBUILDER_ASSETS, whatever version it has; else this
 * project's cache, one folder a version.
 */
async function find(name: string, folder: string): Promise<string | undefined> {
  const { KUBEBUILDER_ASSETS = "" } = process.env;
  const given = KUBEBUILDER_ASSETS === "" ? [] : [join(KUBEBUILDER_ASSETS, name)];
  for (const file of [...given, join(folder, name)]) {
    if (await isExecutable(file)) return file;
  }
  return undefined;
}

function isExecutable(file: string): Promise<boolean> {
  return access(file, constants.X_OK).then(
    () => true,
    () => false,
  );
}

function names<Name extends string>({ programs }: ProgramSet<Name>): readonly Name[] {
  // The keys of a record are what it was written with.
  return Object.keys(programs) as Name[];
}

function folderOf<Name extends string>(set: ProgramSet<Name>, kubernetes: string): string {
  return cacheFolder(set.folder(kubernetesVersion(kubernetes)));
}

/** Those that are not there yet. */
async function absent<Name extends string>(set: ProgramSet<Name>, kubernetes: string): Promise<readonly Name[]> {
  const folder = folderOf(set, kubernetes);
  const found = await Promise.all(names(set).map((name) => find(name, folder)));
  return names(set).filter((_, index) => found[index] === undefined);
}

/** Why these programs are not to be had on this machine; undefined: they are, built if need be. */
export async function missingPrograms<Name extends string>(
  set: ProgramSet<Name>,
  kubernetes: string,
): Promise<string | undefined> {
  const lacking = await absent(set, kubernetes);
  if (lacking.length === 0) return undefined;
  const { failed } = await execa("go", ["version"], { reject: false });
  if (!failed) return undefined;
  return `${lacking.join(", ")}: set KUBEBUILDER_ASSETS to a folder that has them, or install Go, which builds them`;
}

/**
 * Finds the programs, building what is absent: minutes the first time, cached from then on.
 *
 * @throws Error that says what is missing, or what the build said
 */
export async function providePrograms<Name extends string>(
  set: ProgramSet<Name>,
  kubernetes: string,
  progress: (line: string) => void,
): Promise<ProgramPaths<Name>> {
  const lacking = await absent(set, kubernetes);
  const folder = folderOf(set, kubernetes);
  const version = kubernetesVersion(kubernetes);
  if (lacking.length > 0) {
    const missing = await missingPrograms(set, kubernetes);
    if (missing !== undefined) throw new Error(missing);
    progress(`building ${lacking.join(", ")} for Kubernetes ${version} from Go modules (minutes, once)`);
    const wanted = lacking.map((name) => ({ name, ...set.programs[name] }));
    await goBuild(wanted, version, folder);
  }
  const found = await Promise.all(names(set).map(async (name) => [name, await find(name, folder)] as const));
  const gone = found.find(([, file]) => file === undefined);
  if (gone !== undefined) throw new Error(`${gone[0]} was built and is not there`);
  return Object.fromEntries(found) as ProgramPaths<Name>;
}
