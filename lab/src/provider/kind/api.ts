import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { bracketed } from "@fairlead/base";
import { type ApiClient, createApiClient } from "../../control-plane/api-client.ts";
import { PORT } from "../../control-plane/control-plane.ts";
import { relayArgv } from "../../control-plane/relay.ts";
import { kubeconfig } from "../../control-plane/users.ts";
import { startDaemon } from "../../support/daemon.ts";
import type { KindCluster } from "./kind-cluster.ts";
import type { Machine } from "./machine.ts";

export interface KindApi {
  readonly api: ApiClient;
  /** The API server's own address, as agents are given it. */
  readonly url: string;
  /** May do everything. */
  readonly token: string;
  /** A file for whoever reaches the nodes' network and may do everything. */
  readonly kubeconfig: string;
}

const ADMIN = "e2e-admin";

/** Reaches the API server from outside of the machine, as its administrator. */
export async function openApi(
  { network }: Machine,
  { controlPlane, kubectl }: KindCluster,
  folder: string,
  opened: AsyncDisposableStack,
): Promise<KindApi> {
  const address = Object.values(controlPlane.addresses)[0] ?? "";
  const socketPath = join(folder, "api.sock");
  const relay = await startDaemon(network.namespace, {
    name: "relay",
    argv: relayArgv(socketPath, `${bracketed(address)}:${PORT}`),
    logFile: join(folder, "relay.log"),
  });
  opened.defer(() => relay.stop("SIGKILL"));
  await kubectl(["-n", "kube-system", "create", "serviceaccount", ADMIN]);
  const subject = `--serviceaccount=kube-system:${ADMIN}`;
  await kubectl(["create", "clusterrolebinding", ADMIN, "--clusterrole=cluster-admin", subject]);
  const created = await kubectl(["-n", "kube-system", "create", "token", ADMIN, "--duration=8h"]);
  const token = created.stdout.trim();
  const { stdout: ca } = await controlPlane.exec(["cat", "/etc/kubernetes/pki/ca.crt"]);
  const api = createApiClient({ at: { socketPath }, ca, token });
  opened.defer(async () => api.close());
  const url = `https://${bracketed(address)}:${PORT}`;
  const caFile = join(folder, "ca.crt");
  const file = join(folder, "admin.kubeconfig");
  await writeFile(caFile, ca);
  await writeFile(file, kubeconfig({ server: url, caFile, token }), { mode: 0o600 });
  return { api, url, token, kubeconfig: file };
}
