import kubernetes from "./kubernetes.json" with { type: "json" };

/** What --version asks for, as kube-proxy's verflag reads it: nothing, a line, or the details (`raw`). */
export type VersionAsked =
  | { readonly kind: "print"; readonly text: string }
  | { readonly kind: "no"; readonly warnings: readonly string[] };

/** The release of kube-proxy whose flags, fields and defaults these are. */
export const KUBE_PROXY_RELEASE: string = kubernetes.release;

export function versionAsked(option: unknown, version: string): VersionAsked {
  if (option === undefined || option === "false") return { kind: "no", warnings: [] };
  if (option === "true") return { kind: "print", text: `Fairlead v${version}\n` };
  if (option === "raw") {
    const { node, arch, platform } = { node: process.version, arch: process.arch, platform: process.platform };
    const details = {
      fairlead: `v${version}`,
      kubeProxy: `v${KUBE_PROXY_RELEASE}`,
      node,
      platform: `${platform}/${arch}`,
    };
    return { kind: "print", text: `${JSON.stringify(details)}\n` };
  }
  return {
    kind: "no",
    warnings: [`--version=${String(option)}: ignored; must be true, raw or false`],
  };
}
