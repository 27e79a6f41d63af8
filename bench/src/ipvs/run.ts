import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { requireAgent } from "@fairlead/lab/agent/agent-file";
import { type ApiClient, objectPath } from "@fairlead/lab/control-plane/api-client";
import { PORT } from "@fairlead/lab/control-plane/control-plane";
import { kubeProxyProgram } from "@fairlead/lab/control-plane/kube-proxy-program";
import { openOutside } from "@fairlead/lab/provider/guest/outside";
import { nodeAddress } from "@fairlead/lab/provider/netns/addresses";
import { nodeObject, nodeStatus } from "@fairlead/lab/provider/netns/pod-object";
import { folderPrefix } from "@fairlead/lab/support/folder-prefix";
import { boot } from "@fairlead/lab/uml/boot";
import { guestProgram } from "@fairlead/lab/uml/guest-program";
import { missingForUml } from "@fairlead/lab/uml/missing";
import { atOnce, createSlices } from "../cluster/load.ts";
import { NAMESPACE_OBJECT, NODE_NAME, type Size, serviceObject } from "../cluster/objects.ts";
import { type IpvsFigures, PROXIES, type ProxyMeasurement } from "../measure/ipvs-figures.ts";
import type { BenchOptions } from "../measure/options.ts";
import type { Progress } from "../measure/prepare.ts";
import type { GuestSettings } from "./settings.ts";
import { kernelDifferences } from "./table.ts";

const MAIN = fileURLToPath(new URL("guest-main.ts", import.meta.url));
const MEMORY_MIB = 4_096;
const GUEST_MS = 60 * 60_000;

/**
 * Measures ipvs mode in User-Mode Linux, Fairlead or also the real kube-proxy, in turns in one boot: the API server is
 * outside, each run has a network namespace of its own with nothing in it.
 *
 * @throws Error that says what is missing, or with the guest's last words
 */
export async function runIpvsBench(options: BenchOptions, progress: Progress): Promise<IpvsFigures> {
  const missing = await missingForUml();
  if (missing !== undefined) throw new Error(missing);
  await requireAgent();
  const { services, endpoints, changes, runs, kubernetes, against, kubeProxyVersion } = options;
  const kubeProxy = against === undefined ? "" : await kubeProxyProgram(kubeProxyVersion, progress);
  const names = against === undefined ? (["fairlead"] as const) : PROXIES;
  const order = Array.from({ length: runs }, (_, run) => (run % 2 === 0 ? names : names.toReversed())).flat();
  const measured = await inGuest({ services, endpoints, order, changes, kubeProxy }, kubernetes, progress);
  const results = measured.map(({ kernel: _, ...figures }) => figures);
  return { results, differences: kernelDifferences(measured) };
}

async function inGuest(
  asked: Omit<GuestSettings, "apiServer" | "proxyKubeconfig">,
  kubernetes: string,
  progress: Progress,
): Promise<readonly ProxyMeasurement[]> {
  await using opened = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), `${folderPrefix}-bench-`));
  opened.defer(() => rm(folder, { recursive: true, force: true }));
  await mkdir(join(folder, "control-plane"), { recursive: true });
  const { controlPlane, link, host } = await openOutside({ families: ["IPv4"], kubernetes }, folder, opened, progress);
  const { api, ca, token, proxyKubeconfig } = controlPlane;
  await createNode(api);
  await fill(api, asked);
  progress(`${asked.services} services of ${asked.endpoints} endpoints; User-Mode Linux boots`);
  const apiServer = { host, port: PORT, ca, token };
  const settings: GuestSettings = { ...asked, apiServer, proxyKubeconfig };
  const settingsFile = join(folder, "bench.json");
  await writeFile(settingsFile, JSON.stringify(settings), { mode: 0o600 });
  const program = await guestProgram(MAIN, [settingsFile]);
  const { exitCode, stdout, stderr } = await boot({ ...program, link, memoryMiB: MEMORY_MIB, timeoutMs: GUEST_MS });
  if (exitCode !== 0) throw new Error(`the measurement ended with ${exitCode}: ${stderr}`);
  return stdout
    .trim()
    .split("\n")
    .map((line): ProxyMeasurement => JSON.parse(line));
}

async function createNode(api: ApiClient): Promise<void> {
  const node = nodeObject(NODE_NAME, "z1");
  await api.create(node);
  await api.patch(`${objectPath(node)}/status`, nodeStatus(NODE_NAME, { IPv4: nodeAddress.IPv4(1) }));
}

/** Makes the services and their slices through the API server: its etcd is not at hand here. */
async function fill(api: ApiClient, { services, endpoints }: Size): Promise<void> {
  await api.create(NAMESPACE_OBJECT);
  await atOnce(0, services, async (index) => {
    await api.create(serviceObject(index));
    await createSlices(api, index, endpoints);
  });
}
