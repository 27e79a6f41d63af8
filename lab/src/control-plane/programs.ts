/** The control plane's programs: found, or built from Go modules. */

import { access, constants, mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import versions from "../../../versions.json" with { type: "json" };
import { ownPrefix, removeAbandoned } from "../support/run-inventory.ts";

type Program = "etcd" | "kube-apiserver" | "kube-controller-manager";

export type ControlPlanePaths = ProgramPaths<Program>;

const ETCD = "go.etcd.io/etcd/server/v3";

const ETCD_VERSION = versions.etcd;

/** The programs of a control plane, by version of both, as etcd's is pinned here. */
const controlPlane: ProgramSet<Program> = {
  programs: {
    etcd: { package: ETCD, module: { path: ETCD, version: ETCD_VERSION } },
    "kube-apiserver": { package: "k8s.io/kubernetes/cmd/kube-apiserver" },
    "kube-controller-manager": { package: "k8s.io/kubernetes/cmd/kube-controller-manager" },
  },
  folder: (version) => `control-plane-${version}-etcd-${ETCD_VERSION}`,
};

/** Why there is no control plane to be had on this machine; undefined: there is, built if need be. */
export function missingControlPlane(kubernetes: string): Promise<string | undefined> {
  return missingPrograms(controlPlane, kubernetes);
}

/** Finds the programs, building what is absent: minutes the first time, cached from then on. */
export function controlPlanePrograms(kubernetes: string, progress: (line: string) => void): Promise<ControlPlanePaths> {
  return providePrograms(controlPlane, kubernetes, progress);
}

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

/** Why these programs are unavailable on this machine; undefined: they are available, built if need be. */
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

/** Finds the programs, building what is absent: minutes the first time, cached from then on. */
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

export interface GoProgram {
  /** Of the file. */
  readonly name: string;
  /** Its main package; of a test binary the package that is tested. */
  readonly package: string;
  /** The module that is built; absent: Kubernetes itself, in the version that is asked for. */
  readonly module?: GoModule;
  /** `go test -c` in place of `go build`. */
  readonly test?: boolean;
  /** Of the only file of the package that is tested, which uses the module: the package is `.` then. */
  readonly source?: string;
  /** It has C in it: gcc must be there. */
  readonly cgo?: boolean;
  /** It is for Windows. */
  readonly windows?: boolean;
}

export interface GoModule {
  readonly path: string;
  readonly version: string;
  /** Module → the version in place of one that it wants, and that is unavailable. */
  readonly replaced?: Readonly<Record<string, string>>;
  /** A module that it uses, in this version, with a text of a file in place of another one. */
  readonly amended?: {
    readonly path: string;
    readonly version: string;
    readonly file: string;
    readonly before: string;
    readonly after: string;
  };
}

/** What is read of `go mod edit -json`. */
interface ModuleFile {
  readonly Go: string;
  readonly Replace?: readonly Replacement[] | null;
}

/**
 * The go.mod of a module that can build Kubernetes' programs from the module proxy. Kubernetes' own go.mod replaces its
 * staging modules by folders of its repository, which no other module can use: here each is replaced by its published
 * version, v0.Y.Z for v1.Y.Z.
 */
export function kubernetesModule(version: string, own: ModuleFile): string {
  const staging = (own.Replace ?? []).filter((one) => one.New.Path.startsWith("./staging/")).map(({ Old }) => Old.Path);
  const published = version.replace(/^v1\./, "v0.");
  return [
    "module fairlead.test/kubernetes",
    `go ${own.Go}`,
    `require k8s.io/kubernetes ${version}`,
    "replace (",
    ...staging.map((path) => `\t${path} => ${path} ${published}`),
    ")\n",
  ].join("\n");
}

interface RequiredModule {
  readonly path: string;
  readonly version: string;
  readonly replaced?: Readonly<Record<string, string>>;
}

/** The go.mod of a module that builds programs of another one. */
export function requireModule({ path, version, replaced = {} }: RequiredModule, goVersion: string): string {
  const replacements = Object.entries(replaced).map(([other, its]) => `replace ${other} => ${other} ${its}`);
  const lines = ["module fairlead.test/programs", `go ${goVersion}`, `require ${path} ${version}`, ...replacements];
  return `${lines.join("\n")}\n`;
}

/** What makes a program say which version it is. */
export function versionFlags(version: string): string {
  const [, minor = ""] = version.slice(1).split(".");
  const settings = { gitVersion: version, gitMajor: "1", gitMinor: minor, gitTreeState: "clean" };
  const flags = Object.entries(settings).map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`);
  return ["-s", "-w", ...flags].join(" ");
}

const programs: ProgramSet<"kube-proxy"> = {
  programs: { "kube-proxy": { package: "k8s.io/kubernetes/cmd/kube-proxy" } },
  folder: (version) => `kube-proxy-${version}`,
};

/** Finds kube-proxy, building it where it is absent: minutes the first time, cached from then on. */
export async function kubeProxyProgram(kubernetes: string, progress: (line: string) => void): Promise<string> {
  return (await providePrograms(programs, kubernetes, progress))["kube-proxy"];
}

const windowsPrograms: ProgramSet<"kube-proxy.exe"> = {
  programs: { "kube-proxy.exe": { package: "k8s.io/kubernetes/cmd/kube-proxy", windows: true } },
  folder: (version) => `kube-proxy-windows-${version}`,
};

/** The same for Windows. */
export async function kubeProxyForWindows(kubernetes: string, progress: (line: string) => void): Promise<string> {
  return (await providePrograms(windowsPrograms, kubernetes, progress))["kube-proxy.exe"];
}

export const DEFAULT_KUBERNETES = versions.controlPlane;

/** The release whose kube-proxy Fairlead follows: recordings come from it, and figures compare with it. */
export const FOLLOWED_KUBERNETES = versions.kubeProxy;

/** The newest release of each minor version that the Go module proxy serves. */
const RELEASES: Readonly<Record<string, string>> = versions.releases;

/** @param wanted `v1.36`, `1.36` or a full version */
export function kubernetesVersion(wanted: string): string {
  const version = wanted.startsWith("v") ? wanted : `v${wanted}`;
  const known = RELEASES[version];
  if (known !== undefined) return known;
  if (/^v1\.\d+\.\d+(?:-(?:alpha|beta|rc)\.\d+)?$/.test(version)) return version;
  throw new Error(
    `Kubernetes ${wanted} is not a version: give ${Object.keys(RELEASES).join(", ")} or a full one such as v1.36.3`,
  );
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

/** Builds programs from Go modules. Each is in the folder as soon as it is built, and never half. */
async function goBuild(programs: readonly GoProgram[], kubernetes: string, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await removeAbandoned(folder);
  const work = await mkdtemp(join(folder, `${await ownPrefix(".build")}-`));
  try {
    const modules = Map.groupBy(programs, ({ module }) => JSON.stringify(module));
    for (const [index, group] of [...modules.values()].entries()) {
      await buildModule(group, kubernetes, join(work, String(index)), folder);
    }
  } finally {
    // What a killed `go` had started may write for a moment.
    await rm(work, { recursive: true, force: true, maxRetries: 5 });
  }
}

/**
 * Runs a program of Kubernetes' own packages, such as one that prints what they register.
 *
 * @param source of its only file
 * @returns its output
 */
export async function runGo(source: string, kubernetes: string, folder: string): Promise<string> {
  const work = await mkdtemp(join(folder, ".run-"));
  await writeFile(join(work, "go.mod"), await kubernetesOwn(kubernetes, work));
  await writeFile(join(work, "main.go"), source);
  return `${await go(["run", "main.go"], work)}\n`;
}

async function buildModule(
  programs: readonly GoProgram[],
  kubernetes: string,
  work: string,
  folder: string,
): Promise<void> {
  await mkdir(work, { recursive: true });
  const module = programs[0]?.module;
  await writeFile(join(work, "go.mod"), await (module ? otherModule(module, work) : kubernetesOwn(kubernetes, work)));
  const flags = module ? "-s -w" : versionFlags(kubernetes);
  if (module?.amended !== undefined) await amend(module.amended, work);
  for (const { name, package: path, source, test = false, cgo = false, windows = false } of programs) {
    if (source !== undefined) await writeFile(join(work, "main_test.go"), source);
    const how = cgo ? staticC(flags) : ["-ldflags", flags];
    const command = test ? ["test", "-c", "-vet=off"] : ["build"];
    await go([...command, "-o", name, ...how, path], work, { cgo, windows, lock: join(folder, ".lock") });
    await rename(join(work, name), join(folder, name));
  }
}

/** Has a copy of a module in its place. @throws Error where the text is not there */
async function amend({ path, version, file, before, after }: NonNullable<GoModule["amended"]>, work: string) {
  const { Dir } = JSON.parse(await go(["mod", "download", "-json", `${path}@${version}`], work));
  await execa("cp", ["-r", "--no-preserve=mode", String(Dir), join(work, "amended")]);
  const own = join(work, "amended", file);
  const text = await readFile(own, "utf8");
  if (!text.includes(before)) throw new Error(`${file} of ${path} has no ${JSON.stringify(before)}`);
  await writeFile(own, text.replace(before, after));
  await go(["mod", "edit", `-replace=${path}=./amended`], work);
}

/** Without a C library alongside it, as the others are. */
function staticC(flags: string): readonly string[] {
  return ["-tags", "netgo,osusergo", "-ldflags", `${flags} -linkmode external -extldflags -static`];
}

async function otherModule(module: GoModule, work: string): Promise<string> {
  const { GOVERSION = "go1.24" } = JSON.parse(await go(["env", "-json", "GOVERSION"], work));
  return requireModule(module, String(GOVERSION).replace(/^go/, ""));
}

async function kubernetesOwn(version: string, work: string): Promise<string> {
  const { GoMod } = JSON.parse(await go(["mod", "download", "-json", `k8s.io/kubernetes@${version}`], work));
  await writeFile(join(work, "upstream.mod"), await readFile(String(GoMod)));
  const upstream: ModuleFile = JSON.parse(await go(["mod", "edit", "-json", "upstream.mod"], work));
  return kubernetesModule(version, upstream);
}

interface GoOptions {
  readonly cgo?: boolean;
  readonly windows?: boolean;
  /** A file: of commands with the same one, one runs at a time. */
  readonly lock?: string;
}

/** Gives its output. */
async function go(args: readonly string[], cwd: string, { cgo, windows, lock }: GoOptions = {}): Promise<string> {
  // Two runs that lack the same program would compile it twice: the later one finds all in Go's cache, and links.
  const [program, ...first] = lock === undefined ? (["go"] as const) : (["flock", lock, "go"] as const);
  const result = await execa(program, [...first, ...args], {
    cwd,
    // What `go` writes on its way goes with the folder, also when it is killed.
    env: {
      GOTMPDIR: cwd,
      CGO_ENABLED: cgo ? "1" : "0",
      GOFLAGS: "-mod=mod -buildvcs=false",
      GOWORK: "off",
      ...(windows && { GOOS: "windows", GOARCH: "amd64" }),
    },
    reject: false,
  });
  if (result.failed) throw new Error(`go ${args[0]} failed: ${result.stderr || result.shortMessage}`);
  return result.stdout;
}

interface Replacement {
  readonly Old: { readonly Path: string };
  readonly New: { readonly Path: string };
}
