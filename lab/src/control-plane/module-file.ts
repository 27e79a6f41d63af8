/** What is read of `go mod edit -json`. */
export interface ModuleFile {
  readonly Go: string;
  readonly Replace?: readonly Replacement[] | null;
}

interface Replacement {
  readonly Old: { readonly Path: string };
  readonly New: { readonly Path: string };
}

/**
 * The go.mod of a module that can build Kubernetes' programs from the module proxy. Kubernetes' own go.mod replaces its
 * staging modules by folders of its repository, which count for nobody but itself: here each is replaced by its
 * published version, v0.Y.Z for v1.Y.Z.
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
