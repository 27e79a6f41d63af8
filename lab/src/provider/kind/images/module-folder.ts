import { tmpdir } from "node:os";
import type { Runner } from "@fairlead/kernel";

/** Where Go keeps the source of Kubernetes; it is fetched when it is not there. */
export async function moduleFolder(runner: Runner, version: string): Promise<string> {
  const argv = ["env", "-C", tmpdir(), "GOFLAGS=-mod=mod", "GOWORK=off", "go"] as const;
  const { stdout } = await runner.run([...argv, "mod", "download", "-json", `k8s.io/kubernetes@${version}`]);
  return String(JSON.parse(stdout).Dir);
}
