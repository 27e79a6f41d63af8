import { fileURLToPath } from "node:url";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import { applyLines, runnerIn } from "@fairlead/lab/wire/apply";
import { fill } from "../cluster/load.ts";
import { POD_RANGE, podAddress, SERVICE_PORT, type Size, serviceAddress, TARGET_PORT } from "../cluster/objects.ts";
import { median } from "../measure/figures.ts";
import { type BedOptions, type Prepared, type Progress, withBed } from "../measure/prepare.ts";
import type { MeasuredProxy, ProxyName } from "../proxy/measured-proxy.ts";
import { startProxy } from "../proxy/running.ts";
import type { ConnectionTimes } from "./client-main.ts";

export interface ConnectionOptions extends BedOptions, Size {
  /** In each round. */
  readonly connections: number;
}

/** Microseconds of a new connection, medians of all rounds. */
export interface ConnectionFigures {
  readonly rounds: number;
  /** To endpoints themselves, without rules. */
  readonly direct: ConnectionTimes;
  /** To services. */
  readonly proxies: Partial<Record<ProxyName, ConnectionTimes>>;
}

/** In turns, so that what the machine does meanwhile comes to all. */
const ROUNDS = 15;
/** Services that are connected to, spread over all. */
const TARGETS = 500;
const CLIENT = fileURLToPath(new URL("client-main.ts", import.meta.url));

/**
 * What a new connection costs behind the rules of each proxy: from a node to a service of endpoints that are addresses
 * of that node and refuse it. No packet leaves the node.
 */
export function measureConnections(
  options: ConnectionOptions,
  subjects: readonly MeasuredProxy[],
  progress: Progress,
): Promise<ConnectionFigures> {
  return withBed(options, progress, async (prepared) => {
    await using nodes = new AsyncDisposableStack();
    await fill(prepared.bed, options);
    const bare = nodes.use(await prepared.bed.openNode());
    const served = new Map<ProxyName, NetworkNamespace>();
    for (const subject of subjects) {
      progress(`starting ${subject.name}`);
      served.set(subject.name, await servedBy(subject, prepared, nodes));
    }
    for (const node of [bare, ...served.values()]) await answerForEndpoints(node);
    return await inTurns(bare, served, options, progress);
  });
}

/** The rules stay when the proxy ends. */
async function servedBy(
  subject: MeasuredProxy,
  { bed, startSettings }: Prepared,
  nodes: AsyncDisposableStack,
): Promise<NetworkNamespace> {
  const running = nodes.use(await startProxy(bed, { ...startSettings, subject }));
  await running.stop();
  return running.node;
}

function answerForEndpoints(node: NetworkNamespace): Promise<void> {
  return applyLines(runnerIn(node), ["link set lo up", `route add local ${POD_RANGE} dev lo`]);
}

async function inTurns(
  bare: NetworkNamespace,
  served: ReadonlyMap<ProxyName, NetworkNamespace>,
  options: ConnectionOptions,
  progress: Progress,
): Promise<ConnectionFigures> {
  const some = Array.from({ length: Math.min(TARGETS, options.services) }, (_, number) =>
    Math.floor((number * options.services) / TARGETS),
  );
  const endpoints = some.map((index) => podAddress(index * options.endpoints));
  const direct: ConnectionTimes[] = [];
  const proxies = new Map([...served.keys()].map((name) => [name, [] as ConnectionTimes[]]));
  for (let round = 1; round <= ROUNDS; round++) {
    progress(`round ${round} of ${ROUNDS}`);
    direct.push(await connectTo(bare, endpoints, TARGET_PORT, options.connections));
    for (const [name, node] of round % 2 === 1 ? served : [...served].toReversed()) {
      proxies.get(name)?.push(await connectTo(node, some.map(serviceAddress), SERVICE_PORT, options.connections));
    }
  }
  const medians = Array.from(proxies, ([name, times]) => [name, medianOf(times)] as const);
  return { rounds: ROUNDS, direct: medianOf(direct), proxies: Object.fromEntries(medians) };
}

async function connectTo(
  node: NetworkNamespace,
  addresses: readonly string[],
  port: number,
  count: number,
): Promise<ConnectionTimes> {
  const argv = [process.execPath, "--no-warnings", CLIENT, String(count), String(port), ...addresses] as const;
  const { stdout } = await runnerIn(node).run(argv);
  return JSON.parse(stdout);
}

function medianOf(times: readonly ConnectionTimes[]): ConnectionTimes {
  return { cpu: median(times.map(({ cpu }) => cpu)), wall: median(times.map(({ wall }) => wall)) };
}
