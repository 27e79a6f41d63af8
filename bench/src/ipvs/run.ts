import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type ApiClient, objectPath } from "@fairlead/lab/control-plane/api-client";
import { PORT } from "@fairlead/lab/control-plane/control-plane";
import { openOutside } from "@fairlead/lab/provider/guest/outside";
import { nodeAddress } from "@fairlead/lab/provider/netns/addresses";
import { nodeObject, nodeStatus } from "@fairlead/lab/provider/netns/pod-object";
import type { Progress } from "@fairlead/lab/provider/provider";
import { folderPrefix } from "@fairlead/lab/support/folder-prefix";
import { boot } from "@fairlead/lab/uml/boot";
import { guestProgram } from "@fairlead/lab/uml/guest-program";
import { fill } from "./load.ts";
import { type BenchSettings, type Measured, NODE_NAME } from "./settings.ts";

const MAIN = fileURLToPath(new URL("guest-main.ts", import.meta.url));
const MEMORY_MIB = 4_096;

export interface BenchRequest
  extends Pick<BenchSettings, "services" | "endpoints" | "order" | "changes" | "kubeProxy"> {
  /** `v1.36` or a full version, of the control plane */
  readonly kubernetes: string;
  readonly timeoutMs: number;
}

/**
 * Measures ipvs mode in User-Mode Linux beside the real kube-proxy: the API server is outside, each proxy has a network
 * namespace of its own with nothing in it, one after the other in one boot.
 *
 * @throws Error with the guest's last words
 */
export async function measureIpvs(request: BenchRequest, progress: Progress): Promise<readonly Measured[]> {
  const { services, endpoints, order, changes, kubeProxy, kubernetes, timeoutMs } = request;
  await using opened = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), `${folderPrefix}-bench-`));
  opened.defer(() => rm(folder, { recursive: true, force: true }));
  await mkdir(join(folder, "control-plane"), { recursive: true });
  const { controlPlane, link, host } = await openOutside({ families: ["IPv4"], kubernetes }, folder, opened, progress);
  const { api, ca, token, proxyKubeconfig } = controlPlane;
  await createNode(api);
  await fill(api, { services, endpoints });
  progress(`${services} services of ${endpoints} endpoints; User-Mode Linux boots`);
  const apiServer = { host, port: PORT, ca, token };
  const settings: BenchSettings = { services, endpoints, order, changes, kubeProxy, apiServer, proxyKubeconfig };
  const settingsFile = join(folder, "bench.json");
  await writeFile(settingsFile, JSON.stringify(settings), { mode: 0o600 });
  const program = await guestProgram(MAIN, [settingsFile]);
  const { exitCode, stdout, stderr } = await boot({ ...program, link, memoryMiB: MEMORY_MIB, timeoutMs });
  if (exitCode !== 0) throw new Error(`the measurement ended with ${exitCode}: ${stderr}`);
  return stdout
    .trim()
    .split("\n")
    .map((line): Measured => JSON.parse(line));
}

async function createNode(api: ApiClient): Promise<void> {
  const node = nodeObject(NODE_NAME, "z1");
  await api.create(node);
  await api.patch(`${objectPath(node)}/status`, nodeStatus(NODE_NAME, { IPv4: nodeAddress.IPv4(1) }));
}
