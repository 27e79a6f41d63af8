import { mkdir, writeFile } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bracketed } from "@fairlead/base";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import { PORT as API_PORT } from "../../control-plane/control-plane.ts";
import { relayArgv } from "../../control-plane/relay.ts";
import { startDaemon } from "../../support/daemon.ts";
import { orDispose } from "../../support/or-dispose.ts";
import { startGuest } from "../../uml/boot.ts";
import { guestProgram } from "../../uml/guest-program.ts";
import { runnerIn } from "../../wire/apply.ts";
import type { Cluster, ClusterShape } from "../cluster.ts";
import { gatesBefore } from "../netns/gates.ts";
import type { ClusterRequest, Progress } from "../provider.ts";
import type { GuestSettings } from "./calls.ts";
import { type Outside, openOutside } from "./outside.ts";
import { remoteCluster } from "./remote.ts";
import { askOver } from "./wire.ts";

const MAIN = fileURLToPath(new URL("main.ts", import.meta.url));
/** Where the guest connects to. */
const CALLS_PORT = 7000;
const MEMORY_MIB = 6_144;

/**
 * A cluster in User-Mode Linux: its nodes, pods and agents are namespaces and processes of the guest; the control
 * plane, which would be slow there, and the specs are outside. One boot serves all specs.
 */
export function openInGuest(
  request: ClusterRequest,
  shape: ClusterShape,
  folder: string,
  progress: Progress,
): Promise<Cluster> {
  return orDispose((opened) => build({ request, shape, folder, progress }, opened));
}

interface Parts {
  readonly request: ClusterRequest;
  readonly shape: ClusterShape;
  readonly folder: string;
  readonly progress: Progress;
}

async function build({ request, shape, folder, progress }: Parts, opened: AsyncDisposableStack): Promise<Cluster> {
  const outside = await openOutside(request, folder, opened, progress);
  const { namespace, host, controlPlane } = outside;
  const { certificate } = controlPlane;
  const [family = "IPv4"] = shape.families;
  progress("the control plane answers; User-Mode Linux boots");
  const settings = guestSettings(request, shape, outside);
  const ask = askOver(await bootAndConnect(outside, settings, folder, opened), progress);
  const cluster = await ask("open");
  return remoteCluster({
    shape,
    opened: cluster,
    ask,
    api: controlPlane.api,
    apiServer: {
      url: controlPlane.url,
      token: controlPlane.token,
      run: (argv) => runnerIn(namespace).run(argv),
      stop: controlPlane.stopApiServer,
      start: controlPlane.startApiServer,
      ...(certificate !== undefined && gatesBefore({ namespace, family, host, certificate, nodes: cluster.nodes })),
    },
    dispose: () => opened.disposeAsync(),
  });
}

function guestSettings(request: ClusterRequest, shape: ClusterShape, { host, controlPlane }: Outside): GuestSettings {
  const { url, token, ca, proxyKubeconfig, adminKubeconfig } = controlPlane;
  const apiServer = { host, port: API_PORT, ca, url, token };
  return { request, shape, apiServer, proxyKubeconfig, adminKubeconfig, host, port: CALLS_PORT };
}

/** Boots the guest, and gives its connection. */
async function bootAndConnect(
  { namespace, link }: Outside,
  settings: GuestSettings,
  folder: string,
  opened: AsyncDisposableStack,
): Promise<Socket> {
  const own = join(folder, "guest");
  await mkdir(own, { recursive: true });
  const settingsFile = join(own, "settings.json");
  await writeFile(settingsFile, JSON.stringify(settings), { mode: 0o600 });
  const { connection } = await listen(namespace, settings, own, opened);
  // What the cluster keeps on disk is in the guest's memory.
  const program = await guestProgram(MAIN, [settingsFile, "/run/cluster"]);
  const guest = await startGuest({ ...program, memoryMiB: MEMORY_MIB, link });
  opened.defer(() => guest.kill());
  const ended = guest.ended.then(({ exitCode, stderr }) => {
    throw new Error(`the cluster in User-Mode Linux ended with ${exitCode}: ${stderr}`);
  });
  // Later on, whoever waits for an answer hears of it.
  ended.catch(() => {});
  return Promise.race([connection, ended]);
}

/** Listens in this process; a relay leads there from where the guest can connect to. */
async function listen(
  namespace: NetworkNamespace,
  { host, port }: GuestSettings,
  folder: string,
  opened: AsyncDisposableStack,
): Promise<{ readonly connection: Promise<Socket> }> {
  const path = join(folder, "calls.sock");
  const server = createServer();
  const connection = new Promise<Socket>((resolve) => server.once("connection", resolve));
  await new Promise<void>((resolve) => server.listen(path, resolve));
  opened.defer(async () => void server.close());
  const argv = relayArgv(`${bracketed(host)}:${port}`, path);
  const relay = await startDaemon(namespace, { name: "relay", argv, logFile: join(folder, "relay.log") });
  opened.defer(() => relay.stop("SIGKILL"));
  return { connection };
}
