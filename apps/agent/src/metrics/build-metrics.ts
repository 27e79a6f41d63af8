import type { MetricFactory } from "./registry.ts";

/** Go's names of what Node calls otherwise. */
const GO_ARCH: Readonly<Record<string, string>> = { x64: "amd64", ia32: "386" };

const BUILD_LABELS = ["version", "node_version", "platform", "service_proxy_name"] as const;

/**
 * What runs here: Fairlead's own version, and, for dashboards that show components by version, the release of
 * kube-proxy that it follows, with kube-proxy's labels.
 */
export function addBuildMetrics(make: MetricFactory, version: string, follows: string, serviceProxyName: string): void {
  const platform = `${process.platform}/${GO_ARCH[process.arch] ?? process.arch}`;
  const [major = "", minor = ""] = follows.split(".");
  make
    .gauge("fairlead_build_info", "1, labeled with the running version", BUILD_LABELS)
    .set({ version, node_version: process.version, platform, service_proxy_name: serviceProxyName }, 1);
  const unknown = { git_commit: "", git_tree_state: "", build_date: "", go_version: "", compiler: "" };
  make
    .gauge("kubernetes_build_info", "1, labeled with the kube-proxy release that Fairlead follows", [
      ...["major", "minor", "git_version", "git_commit", "git_tree_state"],
      "build_date",
      "go_version",
      "compiler",
      "platform",
    ])
    .set({ major, minor, git_version: `v${follows}+fairlead.${version}`, ...unknown, platform }, 1);
}
