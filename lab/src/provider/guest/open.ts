/** A cluster in User-Mode Linux: its control plane outside, nodes and pods in the guest. */

import { mkdir, writeFile } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bracketed } from "@fairlead/base";
import { createNamespace, type NetworkNamespace } from "@fairlead/kernel/netns";
import { PORT as API_PORT, type ControlPlane, relayArgv } from "../../control-plane/control-plane.ts";
import { orDispose, startDaemon } from "../../support/processes.ts";
import { type GuestLink, guestProgram, startGuest } from "../../uml/boot.ts";
import { applyLines, applySettings, kernelSettings, runnerIn } from "../../wire.ts";
import type { Cluster, ClusterShape } from "../cluster.ts";
import { gatesBefore, openControlPlane } from "../netns/control-plane.ts";
import { familiesOnly, gateAddress, gateCounter, STRANGER_ADDRESS } from "../netns/ground.ts";
import type { ClusterRequest, Progress } from "../provider.ts";
import { remoteOver } from "./remote.ts";
import { type GuestCluster, type GuestSettings, MACHINE_END, machineLines, TAP } from "./wire.ts";

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

const MAIN = fileURLToPath(new URL("main.ts", import.meta.url));
/** Where the guest connects to. */
const CALLS_PORT = 7000;
const MEMORY_MIB = 6_144;

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
  const cluster = await remoteOver<GuestCluster>(await bootAndConnect(outside, settings, folder, opened), progress);
  const gates = gateCounter();
  return {
    ...shape,
    ...cluster,
    api: controlPlane.api,
    strangerAddresses: familiesOnly(shape.families, STRANGER_ADDRESS),
    gateAddress: (node, of) => gateAddress[of](shape.nodeNames.indexOf(node.name) + 1, gates()),
    // Its namespaces cannot be entered from here.
    tour: [],
    apiServer: {
      url: controlPlane.url,
      token: controlPlane.token,
      ca: controlPlane.ca,
      run: (argv) => runnerIn(namespace).run(argv),
      stop: controlPlane.stopApiServer,
      start: controlPlane.startApiServer,
      ...(certificate !== undefined && gatesBefore({ namespace, family, host, certificate, nodes: cluster.nodes })),
    },
    dispose: () => opened.disposeAsync(),
  };
}

/** What a guest's cluster has outside of it: the machine's end of the link, and the control plane there. */
interface Outside {
  readonly namespace: NetworkNamespace;
  /** Given to the guest when it boots. */
  readonly link: GuestLink;
  /** The address of this end. */
  readonly host: string;
  readonly controlPlane: ControlPlane;
}

function guestSettings(request: ClusterRequest, shape: ClusterShape, { host, controlPlane }: Outside): GuestSettings {
  const { url, token, ca, proxyKubeconfig, adminKubeconfig } = controlPlane;
  const apiServer = { host, port: API_PORT, ca, url, token };
  return { request, shape, apiServer, proxyKubeconfig, adminKubeconfig, host, port: CALLS_PORT };
}

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
  // Later on, each call that waits for an answer fails with it.
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

/** @param opened gets what has to be closed */
async function openOutside(
  request: Pick<ClusterRequest, "families" | "kubernetes">,
  folder: string,
  opened: AsyncDisposableStack,
  progress: Progress,
): Promise<Outside> {
  const namespace = opened.use(await createNamespace());
  await applySettings(runnerIn(namespace), kernelSettings("outside"));
  await applyLines(runnerIn(namespace), machineLines);
  const controlPlane = await openControlPlane(request, { namespace, addresses: MACHINE_END, folder }, progress);
  opened.defer(() => controlPlane.dispose());
  const host = MACHINE_END[request.families[0] ?? "IPv4"];
  return { namespace, link: { namespace, tap: TAP }, host, controlPlane };
}
