/** Serves a Windows node: its lock, its network, and all that the agent is put together from. */

import { once } from "node:events";
import { connect, createServer } from "node:net";
import { networkInterfaces } from "node:os";
import { text } from "node:stream/consumers";
import {
  configuredOptions,
  createWindowsBackend,
  featuresOf,
  isOverlay,
  type Network,
  removeWindowsMode,
  windowsFacts,
} from "@fairlead/backend-windows";
import {
  errorChainText,
  errorCode,
  familyOf,
  IP_FAMILIES,
  isUnspecified,
  sleep,
  systemClock,
  type Timers,
} from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import type { Backend, IPFamily } from "@fairlead/core";
import { componentOf, NodeEvents } from "@fairlead/intake";
import { createHcn, type HcnClient, openHcnLibrary } from "@fairlead/kernel/hcn";
import { version } from "../about/version.ts";
import { sourceAddress } from "../kernel.ts";
import type { Log } from "../log.ts";
import { setUpNetworks } from "../networks.ts";
import { loadMemory, stateFile } from "../ownership.ts";
import type { AgentParts } from "../run/parts.ts";
import { keepHeapSmall } from "../start/engine.ts";
import { logged, runToExit, StartError, startProcess, writeConfig } from "../start/process.ts";
import { openSource } from "../start/source.ts";
import { afterStart, Progress } from "../sync/follower.ts";
import { windowsKernel } from "./kernel.ts";

/** Does what the process was started for; resolves to its exit code. */
export const runWindows = logged(act);

async function act(config: AgentConfig, log: Log): Promise<number> {
  const { action } = config;
  if (action.kind === "write-config") {
    writeConfig(action.path, action.text);
    return 0;
  }
  // Upstream: cmd/kube-proxy/app/server_windows.go.
  if (action.kind === "init-only")
    throw new StartError("--init-only: Windows has nothing to be initialized; remove it");
  const networkName = networkNameOf(config);
  if (action.kind === "cleanup") {
    await lockNode(config.serviceProxyName);
    await removeWindowsMode(await openHcn(), networkName);
    log.info("Removed load balancers and remote endpoints", { network: networkName });
    return 0;
  }
  const { stop, onFullSyncAsked, filter, notes, nodeName, maxClients } = startProcess(config, log);
  await lockNode(config.serviceProxyName);
  log.info("Fairlead starts", { version: `v${version}`, mode: config.mode, node: nodeName, pid: process.pid });
  log.warn("Kernelspace mode is experimental: it was never run on Windows by its authors");
  for (const note of notes) log.info(note);
  const hcn = await openHcn();
  const network = await waitForNetwork(hcn, networkName, log, stop);
  if (network === undefined) return 0;
  const parts = await prepare({ config, filter, nodeName, hcn, network, log });
  const code = await runToExit({ ...parts, onFullSyncAsked, maxClients }, stop);
  if (code === 0) log.info("Fairlead stops; load balancers stay in place");
  return code;
}

/** kube-proxy's flag, or its variable. */
function networkNameOf({ kernelspace: { networkName } }: AgentConfig): string {
  const name = networkName || process.env["KUBE_NETWORK"] || "";
  if (name !== "") return name;
  throw new StartError(
    "winkernel.networkName (--network-name) and the variable KUBE_NETWORK are empty; one must name the HCN network of the pods, such as cbr0",
  );
}

async function openHcn(): Promise<HcnClient> {
  try {
    return createHcn(await openHcnLibrary());
  } catch (error) {
    throw new StartError(`Windows' Host Compute Network cannot be reached: ${errorChainText(error)}`, { cause: error });
  }
}

/** Milliseconds between two looks for the network; upstream has as many. */
const LOOK_MS = 1_000;

/**
 * The network, as soon as the CNI plugin has made it, which is often after the first start of a node.
 *
 * @returns undefined: `signal` aborted
 */
export async function waitForNetwork(
  hcn: Pick<HcnClient, "network">,
  name: string,
  log: Log,
  signal: AbortSignal,
  timers: Timers = systemClock,
): Promise<Network | undefined> {
  let reported = "";
  while (!signal.aborted) {
    const found = await hcn.network(name).catch(errorChainText);
    if (typeof found === "object") return found;
    const reason = found ?? "there is no network of this name";
    if (reason !== reported)
      log.warn("Waiting for the HCN network, which the CNI plugin makes", { network: name, reason });
    reported = reason;
    await sleep(timers, LOOK_MS, signal);
  }
  return undefined;
}

/** All containers with rights on the host have its pipes. */
const PIPE = "\\\\.\\pipe\\fairlead-proxy";

/**
 * Makes this process the one agent of its service proxy name on this node until it ends.
 *
 * @param pipe default: the node's
 */
export async function lockNode(serviceProxyName: string, pipe = PIPE): Promise<void> {
  const path = serviceProxyName === "" ? pipe : `${pipe}-${serviceProxyName}`;
  const about = `process ${process.pid} (version ${version}, running since ${new Date().toISOString()})`;
  const server = createServer((socket) => socket.on("error", () => {}).end(about));
  server.listen(path);
  try {
    await once(server, "listening");
    server.unref();
  } catch (error) {
    if (errorCode(error) !== "EADDRINUSE") throw error;
    throw new StartError(`another agent runs on this node: ${await holderOf(path)} holds ${path}`, { cause: error });
  }
}

interface WindowsNode {
  readonly config: AgentConfig;
  readonly filter: AgentParts["filter"];
  readonly nodeName: string;
  readonly hcn: HcnClient;
  readonly network: Network;
  readonly log: Log;
}

/** @returns all that the agent is put together from; nothing of it runs yet */
async function prepare({ config, filter, nodeName, hcn, network, log }: WindowsNode): Promise<AgentParts> {
  const served = await familiesOf(hcn, network, config);
  for (const [ipFamily, reason] of served.unserved) {
    log.warn("IP family unavailable; its services are not served on this node", { ipFamily, reason });
  }
  const progress = new Progress();
  const backends = served.families.map((family): [IPFamily, Backend] => [
    family,
    createWindowsBackend(hcn, {
      ...configuredOptions(config),
      networkName: network.Name,
      family,
      nodeAddress: () => nodeAddress(config),
      turn: progress.turnOf(family),
      onProblem: (problem) => log.warn("Problem in kernelspace mode", { ipFamily: family, problem }),
    }),
  ]);
  const [{ source, events: eventPort }, memory, networks] = await Promise.all([
    openSource(config, nodeName, log),
    loadMemory(stateFile(config.stateDir, "memory"), filter, log),
    setUpNetworks(config, filter, log),
  ]);
  const component = componentOf(config.serviceProxyName);
  const events = eventPort && new NodeEvents({ node: nodeName, component, ...eventPort, clock: systemClock, log });
  const message = `Fairlead v${version}`;
  void events?.report({ type: "Normal", reason: "Starting", action: "StartKubeProxy", message });
  return {
    config,
    filter,
    networks,
    nodeName,
    kernel: windowsKernel(systemClock),
    mode: windowsFacts,
    removals: [],
    backends: new Map(backends),
    familiesAtOnce: windowsFacts.familiesAtOnce,
    progress,
    unserved: served.unserved,
    followers: [afterStart(keepHeapSmall)],
    memory,
    source,
    events,
    clock: systemClock,
    log,
  };
}

/** Which families the network can have (upstream: DualStackCompatible, platformCheckSupported). */
export async function familiesOf(
  hcn: Pick<HcnClient, "version">,
  network: Network,
  { bindAddress, kernelspace }: Pick<AgentConfig, "bindAddress" | "kernelspace">,
): Promise<{ readonly families: readonly IPFamily[]; readonly unserved: ReadonlyMap<IPFamily, string> }> {
  const features = featuresOf(await hcn.version());
  if (kernelspace.enableDSR && !features.dsr) {
    throw new StartError("winkernel.enableDSR: this version of Windows has no direct server return; remove it");
  }
  if (isOverlay(network)) {
    if (!kernelspace.overlay)
      throw new StartError("the HCN network is an overlay, and the feature gate WinOverlay is off");
    return { families: ["IPv4"], unserved: new Map([["IPv6", "Windows has no IPv6 on overlay networks"]]) };
  }
  if (features.dualStack) return { families: IP_FAMILIES, unserved: new Map() };
  const family = familyOf(bindAddress);
  const reason = "this version of Windows has no networks with both families";
  return {
    families: [family],
    unserved: new Map(IP_FAMILIES.filter((one) => one !== family).map((one) => [one, reason])),
  };
}

/** Where other nodes reach this one, with its interface's MAC address; undefined: no interface has the address. */
async function nodeAddress({ bindAddress }: AgentConfig) {
  const address = isUnspecified(bindAddress) ? await sourceAddress("IPv4") : bindAddress;
  const found = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  const mac = found.find((one) => one.address === address)?.mac;
  return address === undefined || mac === undefined ? undefined : { address, mac };
}

async function holderOf(path: string): Promise<string> {
  try {
    return (await text(connect(path))) || "a process";
  } catch {
    return "a process";
  }
}
