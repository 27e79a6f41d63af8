import { type ProgramSet, providePrograms } from "./program-set.ts";

const programs: ProgramSet<"kube-proxy"> = {
  programs: { "kube-proxy": { package: "k8s.io/kubernetes/cmd/kube-proxy" } },
  folder: (version) => `kube-proxy-${version}`,
};

/**
 * Finds kube-proxy, building it where it is absent: minutes the first time, cached from then on.
 *
 * @throws Error that says what is missing, or what the build said
 */
export async function kubeProxyProgram(kubernetes: string, progress: (line: string) => void): Promise<string> {
  return (await providePrograms(programs, kubernetes, progress))["kube-proxy"];
}
