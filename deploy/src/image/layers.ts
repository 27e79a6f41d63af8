/** The layers of the agent's image: Debian's packages, Node and the agent. */

import { chmod, copyFile, mkdir, mkdtemp, readFile, rename, symlink, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { Runner } from "@fairlead/kernel";
import { INSPECTOR_OPTION } from "@fairlead/tooling/agent-node";
import { deployDir, repositoryDir } from "../paths.ts";
import type { Bundle, Programs } from "../sbom/bundle.ts";
import { type DebianPackage, debianPackages } from "../sbom/spdx.ts";
import { type Arch, isFor, nodePackage } from "./arch.ts";
import { hashText, type Layer, packLayer } from "./oci.ts";

export interface PlatformOptions {
  readonly arch: Arch;
  /** Seconds since the epoch. */
  readonly epoch: number;
  readonly programs: Programs;
  readonly notices: string;
  /** An empty folder to work in, removed by the caller. */
  readonly scratch: string;
  /** Where layers of packages are kept from one build to the next; absent: they are made anew. */
  readonly keep?: string;
}

export interface PlatformLayers {
  /** What changes least comes first: a new agent pulls its own layer only. */
  readonly layers: readonly Layer[];
  readonly debian: readonly DebianPackage[];
}

/** Makes the layers of one architecture. */
export async function platformLayers(runner: Runner, options: PlatformOptions): Promise<PlatformLayers> {
  const { arch, epoch, programs, notices, scratch, keep } = options;
  const layer = async (name: string, createdBy: string, fill: (dir: string, work: string) => Promise<void>) => {
    const dir = join(scratch, name);
    await mkdir(dir);
    await fill(dir, await mkdtemp(join(scratch, "work-")));
    return packLayer(runner, dir, join(scratch, `${name}-layer`), { epoch, createdBy });
  };
  const packages = await readFile(join(deployDir, "image/packages.txt"), "utf8");
  const debian = await kept(keep, ["debian", DEBIAN_RELEASE, arch, packages], async () => ({
    layer: await layer("debian", `Debian ${DEBIAN_RELEASE} packages`, (dir, work) =>
      fillWithDebian(runner, dir, { arch, epoch, scratch: work }),
    ),
    packages: await debianPackages(join(scratch, "debian")),
  }));
  const version = await nodeVersion();
  const node = await kept(keep, ["node", version, arch], async () => ({
    layer: await layer("node", `Node ${version}`, (dir, work) => fillWithNode(runner, dir, arch, work)),
  }));
  const agent = await layer("agent", `fairlead-proxy ${programs.agent.app.version}`, (dir) =>
    fillWithPrograms(dir, arch, programs, notices),
  );
  return { layers: [debian.layer, node.layer, agent], debian: debian.packages };
}

/** The names that the image starts the agent by: its own, and the one that kube-proxy's manifests use. */
export const AGENT_NAMES = ["/usr/local/bin/fairlead-proxy", "/usr/local/bin/kube-proxy"] as const;

/** The controller of secondary networks' EndpointSlices. */
export const CONTROLLER_NAME = "/usr/local/bin/fairlead-controller";

/** The command line tool, for users who look into a running container. */
export const CLI_NAME = "/usr/local/bin/fairlead";

/** Puts the programs for an architecture, their names and their licenses into a folder. */
export async function fillWithPrograms(
  dir: string,
  arch: Arch,
  { agent, cli }: Programs,
  notices: string,
): Promise<void> {
  await mkdir(join(dir, "usr/local/bin"), { recursive: true });
  await fillWithApp(dir, agent, { arch, folder: "fairlead", names: AGENT_NAMES });
  await chmod(join(dir, "usr/local/lib/fairlead/controller.js"), 0o755);
  await symlink("../lib/fairlead/controller.js", join(dir, CONTROLLER_NAME));
  await fillWithApp(dir, cli, {
    arch,
    folder: "fairlead-cli",
    names: [CLI_NAME],
    compiledIn: "fairlead",
  });
  const documents = join(dir, "usr/local/share/doc/fairlead");
  await mkdir(documents, { recursive: true });
  await writeFile(join(documents, "LICENSE"), await readFile(join(repositoryDir, "LICENSE")));
  await writeFile(join(documents, "THIRD-PARTY-LICENSES.txt"), notices);
}

interface AppLayout {
  readonly arch: Arch;
  /** In /usr/local/lib. */
  readonly folder: string;
  readonly names: readonly string[];
  /** The folder of another app that has the same compiled code: it is there once. */
  readonly compiledIn?: string;
}

async function fillWithApp(dir: string, bundle: Bundle, place: AppLayout): Promise<void> {
  const { arch, folder, names, compiledIn } = place;
  const lib = join(dir, "usr/local/lib", folder);
  await mkdir(lib, { recursive: true });
  for (const [file, text] of bundle.files) await writeFile(join(lib, file), withInterpreter(text));
  for (const [file, code] of bundle.binaries) {
    if (!isFor(arch, file)) continue;
    if (compiledIn === undefined) await writeFile(join(lib, file), code);
    else await symlink(`../${compiledIn}/${file}`, join(lib, file));
  }
  await chmod(join(lib, "main.js"), 0o755);
  const { name, version, license } = bundle.app;
  await writeFile(
    join(lib, "package.json"),
    `${JSON.stringify({ name, version, license, type: "module" }, null, 2)}\n`,
  );
  for (const link of names) await symlink(`../lib/${folder}/main.js`, join(dir, link));
}

/**
 * The image has Node at one place and no `env`. The kernel hands on what follows the program as one argument, so that
 * there is room for one option of Node's.
 */
export function withInterpreter(bundle: string): string {
  return bundle.replace(/^#!.*$/m, `#!/usr/local/bin/node ${INSPECTOR_OPTION}`);
}

/** Version of Node in the image: the one that the lock file has, with which the tests run. */
export async function nodeVersion(): Promise<string> {
  const manifest = createRequire(join(repositoryDir, "package.json")).resolve("nodejs/package.json");
  const { version } = JSON.parse(await readFile(manifest, "utf8"));
  return String(version);
}

/** Puts Node's binary, from the npm registry, into a folder; npm checks its integrity. */
export async function fillWithNode(runner: Runner, dir: string, arch: Arch, scratch: string): Promise<void> {
  const spec = `${nodePackage(arch)}@${await nodeVersion()}`;
  const { stdout } = await runner.run(["npm", "pack", "--silent", `--pack-destination=${scratch}`, spec], {
    timeoutMs: 300_000,
  });
  await runner.run(["tar", "-xzf", join(scratch, stdout.trim()), "-C", scratch, "--no-same-owner"]);
  const bin = join(dir, "usr/local/bin");
  const documents = join(dir, "usr/local/share/doc/node");
  for (const folder of [bin, documents]) await mkdir(folder, { recursive: true });
  await copyFile(join(scratch, "package/bin/node"), join(bin, "node"));
  await chmod(join(bin, "node"), 0o755);
  await copyFile(join(scratch, "package/LICENSE"), join(documents, "LICENSE"));
}

/** The release that the image is made of; its tools are the ones that the tests run with. */
export const DEBIAN_RELEASE = "bookworm";

/** What a proxy never reads. Copyright files stay: the licenses ask for it. */
const LEFT_OUT = ["/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*", "/usr/share/bash-completion/*"];
const DOCUMENTS = ["path-exclude=/usr/share/doc/*", "path-include=/usr/share/doc/*/copyright"];

/** Left by the way the folder is made, or made anew for each container. */
const NOT_PACKED = ["./dev/*", "./etc/apt", "./etc/dpkg", "./etc/hostname", "./etc/resolv.conf", "./etc/fstab"].concat([
  "./var/lib/apt",
  "./var/cache/apt",
  "./var/lib/dpkg/updates",
  "./var/lib/dpkg/info",
]);

interface DebianOptions {
  readonly arch: Arch;
  /** Seconds since the epoch. */
  readonly epoch: number;
  /** Where mmdebstrap's tar goes for a moment. */
  readonly scratch: string;
}

/**
 * Fills a folder with Debian packages: apt resolves what they depend on, the archives are unpacked, and no script of
 * them runs. So any architecture can be made on any other, without root.
 */
async function fillWithDebian(runner: Runner, dir: string, options: DebianOptions): Promise<void> {
  const tar = join(options.scratch, "debian.tar");
  const packages = (await readFile(join(deployDir, "image/packages.txt"), "utf8")).trim().split(/\s+/);
  await runner.run(mmdebstrap(packages, tar, options), { timeoutMs: 600_000 });
  const except = NOT_PACKED.map((path) => `--exclude=${path}`);
  await runner.run(["tar", "-xf", tar, "-C", dir, "--no-same-owner", ...except], { timeoutMs: 120_000 });
  await chooseIptables(dir);
  await writeFile(join(dir, "etc/passwd"), "root:x:0:0:root:/root:/usr/sbin/nologin\n");
  await writeFile(join(dir, "etc/group"), "root:x:0:\n");
  for (const folder of ["run/fairlead", "var/lib/fairlead"]) await mkdir(join(dir, folder), { recursive: true });
}

function mmdebstrap(packages: readonly string[], tar: string, { arch, epoch }: DebianOptions) {
  return [
    "env",
    `SOURCE_DATE_EPOCH=${epoch}`,
    "mmdebstrap",
    "--quiet",
    "--variant=extract",
    "--format=tar",
    `--architectures=${arch}`,
    `--include=${packages.join(",")}`,
    "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
    `--extract-hook=${join(deployDir, "image/record-packages.sh")}`,
    ...LEFT_OUT.map((path) => `--dpkgopt=path-exclude=${path}`),
    ...DOCUMENTS.map((option) => `--dpkgopt=${option}`),
    DEBIAN_RELEASE,
    tar,
    ...SOURCES,
  ] as const;
}

const KEYRING = "[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]";
const SOURCES = [
  `deb ${KEYRING} http://deb.debian.org/debian ${DEBIAN_RELEASE} main`,
  `deb ${KEYRING} http://deb.debian.org/debian ${DEBIAN_RELEASE}-updates main`,
  `deb ${KEYRING} http://deb.debian.org/debian-security ${DEBIAN_RELEASE}-security main`,
];

/**
 * The plain names, for people who look around in the container, are the nft variant, as update-alternatives would
 * choose. The agent itself calls the variant that the host uses by its full name.
 */
async function chooseIptables(dir: string): Promise<void> {
  for (const program of ["iptables", "ip6tables"]) {
    for (const tool of ["", "-save", "-restore"]) {
      await symlink("xtables-nft-multi", join(dir, "usr/sbin", `${program}${tool}`));
    }
  }
}

/**
 * A layer that is made once and kept; without a folder it is made anew.
 *
 * @param key everything that decides what is in it
 */
async function kept<T extends { readonly layer: Layer }>(
  folder: string | undefined,
  key: readonly string[],
  make: () => Promise<T>,
): Promise<T> {
  if (folder === undefined) return make();
  const path = join(folder, hashText(JSON.stringify(key)).replace(":", "-"));
  const record = await readFile(`${path}.json`, "utf8").catch(() => undefined);
  if (record !== undefined) return JSON.parse(record);
  const made = await make();
  await mkdir(folder, { recursive: true });
  const file = `${path}.layer`;
  await copyFile(made.layer.file, file);
  const value = { ...made, layer: { ...made.layer, file } };
  // The record comes last, and at once: without it there is no layer.
  await writeFile(`${path}.part`, JSON.stringify(value));
  await rename(`${path}.part`, `${path}.json`);
  return value;
}

export interface ImageFacts {
  readonly arch: Arch;
  readonly version: string;
  /** Commit that it was built from, when known. */
  readonly revision?: string;
  /** Seconds since the epoch. */
  readonly epoch: number;
}

/**
 * Where Node looks for compiled code. Only the Dockerfile, which can run the agent, puts some there: V8 does not write
 * the same bytes twice, and an image from packages is the same bytes each time.
 */
export const COMPILED_CODE = "/usr/local/lib/fairlead/compiled";

/** The programs' interpreter lines have Node's option as well, for pods that set NODE_OPTIONS. */
export const ENVIRONMENT: readonly string[] = [
  "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  "MALLOC_ARENA_MAX=1",
  `NODE_OPTIONS=${INSPECTOR_OPTION}`,
  `NODE_COMPILE_CACHE=${COMPILED_CODE}`,
];

/** Configuration of an image (OCI image specification 1.1), as the Dockerfile describes it. */
export function imageConfig(facts: ImageFacts, layers: readonly Pick<Layer, "diffId" | "createdBy">[]) {
  const created = new Date(facts.epoch * 1000).toISOString();
  return {
    architecture: facts.arch,
    os: "linux",
    created,
    config: {
      User: "0",
      WorkingDir: "/",
      Env: ENVIRONMENT,
      Entrypoint: [AGENT_NAMES[0]],
      Labels: labels(facts, created),
    },
    rootfs: { type: "layers", diff_ids: layers.map(({ diffId }) => diffId) },
    history: layers.map(({ createdBy }) => ({ created, created_by: createdBy })),
  };
}

function labels({ version, revision }: ImageFacts, created: string): Record<string, string> {
  return {
    "org.opencontainers.image.created": created,
    "org.opencontainers.image.title": "Fairlead",
    "org.opencontainers.image.description": "Kubernetes service proxy for clusters with more than one pod network",
    "org.opencontainers.image.source": "https://github.com/fairlead-dev/fairlead",
    "org.opencontainers.image.licenses": "Apache-2.0",
    "org.opencontainers.image.version": version,
    ...(revision === undefined ? {} : { "org.opencontainers.image.revision": revision }),
  };
}
