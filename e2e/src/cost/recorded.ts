import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Argv } from "@fairlead/kernel";
import { createNamespace } from "@fairlead/kernel/netns";
import { kubeconfig, USERS } from "@fairlead/lab/control-plane/control-plane";
import { startApi, startKubeProxy } from "@fairlead/lab/plain/kube-proxy";
import { folderPrefix } from "@fairlead/lab/support/run-inventory";
import { waitUntil } from "@fairlead/lab/support/wait-until";
import { runnerIn } from "@fairlead/lab/wire";
import type { RawObject } from "@fairlead/testkit";
import { inNode } from "./network.ts";
import type { Subject } from "./subject.ts";

/** kube-proxy's first sync of ten thousand services, and what nft takes to list them. */
const PATIENCE_MS = 20 * 60_000;

const SYNCED = /SyncProxyRules complete.*ipFamily="IPv4"/;

const SAVE = {
  nftables: ["nft", "list", "table", "ip", "kube-proxy"],
  iptables: ["iptables-legacy-save"],
} as const satisfies Record<string, Argv>;

/** Has the real kube-proxy program a namespace of this machine's kernel, and gives what the tools print of it. */
export async function recordKubeProxy(
  program: string,
  mode: keyof typeof SAVE,
  objects: readonly RawObject[],
): Promise<string> {
  await using opened = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), `${folderPrefix}-record-`));
  opened.defer(() => rm(folder, { recursive: true, force: true }));
  const namespace = opened.use(await createNamespace());
  const api = await startApi(namespace, objects);
  opened.defer(api.stop);
  const access = join(folder, "kubeconfig");
  await writeFile(access, kubeconfig({ server: api.url, token: USERS.proxy.token }));
  const settings = { mode, variant: "legacy", program, kubeconfig: access, folder } as const;
  const kubeProxy = await startKubeProxy({ namespace: () => namespace }, settings);
  opened.defer(() => kubeProxy.stop());
  // The log file comes with the process.
  const log = () => kubeProxy.log().catch(() => "");
  const synced = waitUntil("kube-proxy's first sync", PATIENCE_MS, async () => SYNCED.test(await log()) || undefined);
  const ended = kubeProxy.ended.then(async (how) => Promise.reject(new Error(`${how}: ${(await log()).slice(-2000)}`)));
  await Promise.race([synced, ended]);
  const { stdout } = await runnerIn(namespace).run([...SAVE[mode]], { timeoutMs: PATIENCE_MS });
  return stdout;
}

/** @param text as nft lists it */
export function kubeProxyTable(name: string, text: string): Subject {
  return { name, files: { "kube-proxy": text }, load: [inNode("nft -f /guest/kube-proxy")] };
}
