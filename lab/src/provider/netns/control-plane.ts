/** The control plane in the fabric, and the gates before its API server that faults need. */

import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { IPFamily } from "@fairlead/core";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import { type Certificate, type ControlPlane, PORT, startControlPlane } from "../../control-plane/control-plane.ts";
import { controlPlanePrograms } from "../../control-plane/programs.ts";
import { cutArgv } from "../../faults.ts";
import { PLAIN_TOOL } from "../../support/machine.ts";
import { type Script, startScript } from "../../support/script.ts";
import { runnerIn } from "../../wire.ts";
import type { ApiServerControl, Client } from "../cluster.ts";
import type { ClusterRequest, Progress } from "../provider.ts";
import { SERVICE_CIDRS } from "./ground.ts";

interface ControlPlanePlace {
  readonly namespace: NetworkNamespace;
  /** Where the API server listens; the first of the request's families counts. */
  readonly addresses: Readonly<Record<IPFamily, string>>;
  /** Of the cluster. */
  readonly folder: string;
}

/** The control plane of a cluster of namespaces: builds its programs if need be, and starts it. */
export async function openControlPlane(
  { families, kubernetes }: Pick<ClusterRequest, "families" | "kubernetes">,
  { namespace, addresses, folder }: ControlPlanePlace,
  progress: Progress,
): Promise<ControlPlane> {
  const programs = await controlPlanePrograms(kubernetes, progress);
  const own = join(folder, "control-plane");
  await mkdir(own, { recursive: true });
  return startControlPlane({
    programs,
    namespace,
    address: addresses[families[0] ?? "IPv4"],
    serviceCIDRs: families.map((family) => SERVICE_CIDRS[family]),
    folder: own,
  });
}

/** An API server that gates can stand before. */
interface GatePlace {
  /** Where it is. */
  readonly namespace: NetworkNamespace;
  readonly family: IPFamily;
  /** Its address of that family, at which the nodes reach it. */
  readonly host: string;
  readonly certificate: Certificate;
  /** The nodes whose requests come to a gate that names no nodes. */
  readonly nodes: readonly Pick<Client, "addresses">[];
}

const scriptNamed = (name: string) => fileURLToPath(new URL(`../../control-plane/${name}`, import.meta.url));

const SILENT = scriptNamed("silent-main.ts");

export function gatesBefore(place: GatePlace): Required<Pick<ApiServerControl, "expireWatches" | "turnSilent">> {
  return {
    expireWatches: (ms) => expireWatches(place, ms),
    turnSilent: (node) => openGate(place, { file: SILENT, nodes: [node] }),
  };
}

const API_PORT = String(PORT);
const GATE_PORT = "6444";

/** A script that stands before the API server; its arguments are CERTIFICATE KEY PORT HOST HOST-PORT. */
interface Gate {
  readonly file: string;
  /** The nodes whose requests come to it; default: all nodes. */
  readonly nodes?: GatePlace["nodes"];
}

/**
 * Leads what nodes send to the API server to a script that stands before it with its certificate, what they have open
 * included. `stop` takes it away, and ends what is open through it.
 */
async function openGate(
  { namespace, family, host, certificate: { certFile, keyFile }, nodes: all }: GatePlace,
  { file, nodes = all }: Gate,
): Promise<Script> {
  const runner = runnerIn(namespace);
  const gate = await startScript(namespace, file, [certFile, keyFile, GATE_PORT, host, API_PORT]);
  const sources = nodes.map(({ addresses }) => addresses[family] ?? "");
  const rule = ["-p", "tcp", "--dport", API_PORT, "-j", "REDIRECT", "--to-ports", GATE_PORT];
  const nat = (verb: "-A" | "-D") =>
    runner.run([PLAIN_TOOL[family], "-t", "nat", verb, "PREROUTING", "-s", sources.join(","), ...rule]);
  try {
    await nat("-A");
    for (const source of sources) await runner.run(cutArgv(API_PORT, source));
  } catch (error) {
    await gate.stop();
    throw error;
  }
  let stopped: Promise<void> | undefined;
  const stop = async () => {
    await gate.stop();
    await nat("-D");
  };
  return {
    ...gate,
    stop: () => {
      stopped ??= stop();
      return stopped;
    },
  };
}

const GONE = scriptNamed("gone-main.ts");

/**
 * Leads what nodes send to the API server to a gate that ends every watch with 410 Gone, for so long.
 *
 * @returns how many watches it has ended
 */
async function expireWatches(place: GatePlace, ms: number): Promise<number> {
  const gate = await openGate(place, { file: GONE });
  try {
    await sleep(ms);
    return Number(await gate.ask("count"));
  } finally {
    await gate.stop();
  }
}
