/** Which network owns a service, as all agents see it. */

import { setTimeout as sleep } from "node:timers/promises";
import type { ProbeResult } from "@fairlead/lab/peer/protocol";
import type { Client, Pod } from "@fairlead/lab/provider/cluster";
import { now } from "@fairlead/lab/support/wait-until";
import { expectAnswers, type Target } from "../expect.ts";
import type { TrafficFlow } from "../faults/stage.ts";
import { type OwnershipPage, type OwnershipRow, ownershipPages } from "../multi-cni/untouched.ts";
import type { Scene, ServiceHandle } from "../spec.ts";

/** Waits until every agent has decided so. @param wanted a service of the spec → its owner */
export async function untilOwners(scene: Scene, wanted: Readonly<Record<string, string>>): Promise<void> {
  await untilRows(scene, "the owners", (rows) =>
    Object.entries(wanted).flatMap(([service, owner]) => {
      const { ownership = "unknown" } = rows.get(service) ?? {};
      return ownership === owner ? [] : [`${service} is ${ownership}, not ${owner}`];
    }),
  );
}

/** Waits until every agent knows so many endpoints of a service, on whichever side they are. */
async function untilEndpoints(scene: Scene, service: string, count: number): Promise<void> {
  await untilRows(scene, `${count} endpoints of ${service}`, (rows) => {
    const { ownEndpoints = 0, excludedEndpoints = 0 } = rows.get(service) ?? {};
    return ownEndpoints + excludedEndpoints === count ? [] : [`${ownEndpoints} here, ${excludedEndpoints} there`];
  });
}

/** Waits until all agents say the same of every service and of every learned CIDR: so it is outside of the delays. */
export async function untilAllAgree({ cluster, until }: Scene): Promise<void> {
  await until("the same decisions on every node", async () => {
    const [first, ...others] = (await ownershipPages(cluster)).map(decisionsOf);
    const different = others.filter((one) => one !== first);
    return different.length === 0 ? undefined : `${first}\nand\n${different.join("\n")}`;
  });
}

/** How often services have changed owners on each node since its agent started. */
async function ownerChanges({ cluster }: Pick<Scene, "cluster">): Promise<readonly number[]> {
  return Promise.all(
    cluster.nodes.map(async ({ agent }) => {
      const values = (await agent.get("/metrics")).matchAll(/^fairlead_ownership_changes_total\{.*\} (\d+)$/gm);
      return Array.from(values, ([, value]) => Number(value)).reduce((sum, one) => sum + one, 0);
    }),
  );
}

/** Runs something during which services change owners exactly so often on each node. */
export async function withOwnerChanges(scene: Scene, count: number, act: () => Promise<void>): Promise<void> {
  const before = await ownerChanges(scene);
  await act();
  const after = await ownerChanges(scene);
  const changes = after.map((value, at) => value - (before[at] ?? 0));
  if (changes.some((one) => one !== count)) {
    throw new Error(`wanted ${count} changes of owner on each node; came ${changes.join(" and ")}`);
  }
}

/** Services with one pod each, which move from network to network. */
export interface Fleet {
  readonly names: readonly string[];
  atClusterIPs(from: Client): readonly TrafficFlow[];
  /** The same at the node ports of the first node. */
  atNodePorts(from: Client): readonly TrafficFlow[];
  /** Replaces every pod by one in that network, some services at a time, as a rollout with a surge does. */
  moveTo(network: string): Promise<void>;
}

const PORTS = [
  { name: "tcp", port: 80, protocol: "TCP" },
  { name: "udp", port: 80, protocol: "UDP" },
] as const;

type Protocol = (typeof PORTS)[number]["protocol"];

const AT_ONCE = 5;

/**
 * @param count of the services; their pods are on both nodes, in the scene's network at first
 * @param protocols of the requests
 */
export async function openFleet(scene: Scene, count: number, protocols: readonly Protocol[]): Promise<Fleet> {
  const numbers = Array.from({ length: count }, (_, at) => at);
  const ships = await Promise.all(numbers.map((at) => openShip(scene, at)));
  const moveTo = async (network: string) => {
    for (let at = 0; at < ships.length; at += AT_ONCE) {
      await Promise.all(ships.slice(at, at + AT_ONCE).map((ship) => move(scene, ship, network)));
    }
  };
  const flows = (from: Client, target: (service: ServiceHandle) => Pick<TrafficFlow, "to" | "port">) =>
    protocols.flatMap((protocol) => ships.map(({ service }) => ({ from, protocol, ...target(service) })));
  const node = scene.nodes[0].addresses[scene.family] ?? "";
  return {
    names: ships.map(({ service }) => service.name),
    atClusterIPs: (from) => flows(from, ({ clusterIP }) => ({ to: clusterIP, port: 80 })),
    atNodePorts: (from) => flows(from, ({ nodePort }) => ({ to: node, port: nodePort })),
    moveTo,
  };
}

/** A service that changes hands, as a client sees it that asks it all the while. */
interface ServiceProbe {
  readonly from: Client;
  readonly target: Target;
}

/** Asks from now on until nothing answers. @returns when that was known, in milliseconds from now */
export function untilLeft(asked: ServiceProbe): Promise<number> {
  return untilAll(asked, "no answer", ({ kind }) => kind !== "answer");
}

/** Asks from now on until all clients are answered. @returns when the first of those answers came, in milliseconds */
export function untilServed(asked: ServiceProbe): Promise<number> {
  return untilAll(asked, "an answer", ({ kind }) => kind === "answer");
}

function rowsIn({ services }: OwnershipPage, { namespace, family }: Scene): ReadonlyMap<string, OwnershipRow> {
  const own = services.filter(({ service, ipFamily }) => service.startsWith(`${namespace}/`) && ipFamily === family);
  return new Map(own.map((row) => [row.service.slice(namespace.length + 1), row]));
}

async function untilRows(
  scene: Scene,
  what: string,
  complaints: (rows: ReadonlyMap<string, OwnershipRow>) => readonly string[],
): Promise<void> {
  const { cluster, until } = scene;
  await until(`${what} on every node`, async () => {
    const nodes = (await ownershipPages(cluster)).map((page) => rowsIn(page, scene));
    const found = nodes.flatMap((rows, at) => complaints(rows).map((one) => `${cluster.nodes[at]?.name}: ${one}`));
    return found.length === 0 ? undefined : found.join("; ");
  });
}

function decisionsOf({ services, networks }: OwnershipPage): string {
  const rows = services.map(({ service, ipFamily, ownership }) => [service, ipFamily, ownership].join(" "));
  const learned = (networks?.cidrs ?? []).map(({ side, cidr, stage, objects }) =>
    [side, cidr, stage, ...objects.toSorted()].join(" "),
  );
  return [...rows.sort(), ...learned.sort()].join("\n");
}

/** How long a pod keeps serving once no node sends to it: for other networks' load balancers, and what is under way. */
const GRACE_MS = 3_000;

interface Ship {
  readonly service: ServiceHandle;
  pod: Pod;
}

async function openShip(scene: Scene, at: number): Promise<Ship> {
  const app = `web-${at}`;
  const pod = await scene.pod({ node: scene.nodes[at % 2 === 0 ? 0 : 1], app });
  // The API server gives both ports the same node port, as they have the same number.
  const service = await scene.service(app, { type: "NodePort", selector: { app }, ports: PORTS });
  return { service, pod };
}

async function move(scene: Scene, ship: Ship, network: string): Promise<void> {
  const { pod: old, service } = ship;
  ship.pod = await scene.pod({ node: old.node, network, app: service.name });
  await untilEndpoints(scene, service.name, 2);
  await old.terminate();
  // The controller of slices takes seconds on a busy machine.
  const target = { to: service.clusterIP, port: 80 };
  await Promise.all(scene.nodes.map((node) => expectAnswers(node, target, { by: [ship.pod] })));
  await sleep(GRACE_MS);
  await old.remove();
}

const ROUND = { protocol: "TCP", count: 8, parallel: 2, timeoutMs: 5_000 } as const;
const PATIENCE_MS = 90_000;

/**
 * Asks without a pause until a whole round is as it is wanted.
 *
 * @returns when the first of those requests ended after which none was otherwise
 */
async function untilAll(
  { from, target }: ServiceProbe,
  what: string,
  wanted: (result: ProbeResult) => boolean,
): Promise<number> {
  const began = now();
  let since: number | undefined;
  while (now() < began + PATIENCE_MS) {
    const results = [...(await from.send({ ...ROUND, ...target }))].sort((one, other) => one.at - other.at);
    for (const result of results) since = wanted(result) ? (since ?? result.at) : undefined;
    if (since !== undefined && results.every(wanted)) return since - began;
  }
  throw new Error(`wanted ${what} at ${target.to} within ${PATIENCE_MS} ms`);
}
