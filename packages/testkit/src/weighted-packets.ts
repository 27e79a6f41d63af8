/** Real packets to Services whose slices have weights: how far what came to the endpoints is from their shares. */

import { createSocket } from "node:dgram";
import { once } from "node:events";
import { type Backend, planOnce } from "@fairlead/core";
import type { Runner } from "@fairlead/kernel";
import { endpointSlice, service } from "./objects.ts";

/** What each slice weighs, and how many endpoints it has. */
const CASES: Readonly<Record<string, readonly (readonly [weight: number, endpoints: number])[]>> = {
  "1:9": [
    [1, 1],
    [9, 2],
  ],
  "1:99": [
    [1, 2],
    [99, 3],
  ],
  "0:1": [
    [0, 2],
    [1, 2],
  ],
  "3:3:1": [
    [3, 2],
    [3, 3],
    [1, 5],
  ],
};
const MOST_ENDPOINTS = 10;

/** So many that the rarest endpoint gets twenty. */
const PACKETS = 4_000;
const AT_ONCE = 100;

/** Quantiles of chi-square by degrees of freedom, from 1 on: chance exceeds them once in a million runs. */
const ONE_IN_A_MILLION = [23.93, 27.63, 30.66, 33.38, 35.89, 38.26, 40.52, 42.7, 44.81] as const;

interface Counted {
  readonly name: string;
  readonly chiSquare: number;
  /** What it is below, but for one run in a million. */
  readonly limit: number;
  /** Packets that came to endpoints of weight 0. */
  readonly strays: number;
}

/** In a network namespace of its own, which this process is in. */
export async function countWeighted({ run }: Pick<Runner, "run">, backend: Backend): Promise<readonly Counted[]> {
  const lines = ["link set lo up", "address add 10.144.0.0/16 dev lo", "route add 10.96.0.0/16 dev lo"];
  await run(["ip", "-force", "-batch", "-"], { input: `${lines.join("\n")}\n` });
  const objects = Object.values(CASES).flatMap((_, at) => objectsOf(at));
  const { plans } = planOnce(objects, { nodeName: "node-a", semantics: backend.semantics });
  await backend.sync(plans.IPv4);
  const counts = new Array<number>(MOST_ENDPOINTS).fill(0);
  const servers = counts.map((_, at) =>
    createSocket("udp4", () => (counts[at] = (counts[at] ?? 0) + 1)).bind(8080, addressOf(at)),
  );
  await Promise.all(servers.map((server) => once(server, "listening")));
  const results: Counted[] = [];
  for (const [at, [name, slices]] of Object.entries(CASES).entries()) {
    counts.fill(0);
    for (let sent = 0; sent < PACKETS; sent += AT_ONCE) await sendSome(sent, clusterIP(at), counts);
    results.push({ name, ...compared(slices, counts) });
  }
  for (const server of servers) server.close();
  return results;
}

const clusterIP = (at: number) => `10.96.0.${at + 1}`;
const addressOf = (at: number) => `10.144.0.${at + 1}`;
const sum = (counts: readonly number[]) => counts.reduce((all, one) => all + one, 0);

function objectsOf(at: number) {
  const name = `web-${at}`;
  const slices = Object.values(CASES)[at] ?? [];
  return [
    service(name, { clusterIPs: [clusterIP(at)], ports: [{ port: 80, targetPort: 8080, protocol: "UDP" }] }),
    ...slices.map(([weight, count], each) =>
      endpointSlice(`${name}-${each}`, {
        service: name,
        family: "IPv4",
        ports: [{ port: 8080, protocol: "UDP" }],
        endpoints: Array.from({ length: count }, (_, one) => ({ address: addressOf(firstOf(slices, each) + one) })),
        annotations: { "fairlead.dev/weight": String(weight) },
      }),
    ),
  ];
}

function firstOf(slices: (typeof CASES)[string], each: number): number {
  return sum(slices.slice(0, each).map(([, count]) => count));
}

/** Each from a port of its own: one that was used before would be taken for the flow of before. */
async function sendSome(from: number, to: string, counts: readonly number[]): Promise<void> {
  const sockets = Array.from({ length: AT_ONCE }, (_, at) =>
    createSocket("udp4").bind(10_000 + from + at, "10.144.9.9"),
  );
  await Promise.all(sockets.map((socket) => once(socket, "listening")));
  for (const socket of sockets) socket.send("x", 80, to);
  while (sum(counts) < from + AT_ONCE) await new Promise((resolve) => setImmediate(resolve));
  for (const socket of sockets) socket.close();
}

function compared(slices: (typeof CASES)[string], counts: readonly number[]): Omit<Counted, "name"> {
  const total = sum(slices.map(([weight]) => weight));
  const shares = slices.flatMap(([weight, count]) => Array.from({ length: count }, () => weight / total / count));
  const expected = counts.map((count, at) => ({ count, mean: PACKETS * (shares[at] ?? 0) }));
  const drawn = expected.filter(({ mean }) => mean > 0);
  return {
    chiSquare: sum(drawn.map(({ count, mean }) => (count - mean) ** 2 / mean)),
    limit: ONE_IN_A_MILLION[drawn.length - 2] ?? 0,
    strays: sum(expected.flatMap(({ count, mean }) => (mean > 0 ? [] : count))),
  };
}
