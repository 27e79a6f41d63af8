import { attribute, nest } from "@fairlead/netfilter/netlink";
import { expect } from "vitest";
import type { Conntrack, ConntrackFlow, Runner } from "../../src/index.ts";

export const flow = (change: Partial<ConntrackFlow> = {}): ConntrackFlow => ({
  family: "IPv4",
  protocol: "UDP",
  originalDestination: "10.96.0.10",
  originalPort: 53,
  replySource: "10.144.0.5",
  replyPort: 5353,
  ...change,
});
export const v6 = flow({ family: "IPv6", originalDestination: "fd00:10:96::a", replySource: "fd00:144::5" });
export const tracked: readonly ConntrackFlow[] = [
  flow(),
  flow(),
  flow({ replySource: "10.144.0.6" }),
  flow({ originalPort: 54 }),
  flow({ replyPort: 53 }),
  flow({ originalDestination: "10.96.0.11" }),
  flow({ protocol: "TCP" }),
  flow({ protocol: "SCTP" }),
  v6,
];

interface Case {
  readonly name: string;
  readonly delete: readonly ConntrackFlow[];
  readonly left: readonly ConntrackFlow[];
}

/** Run on the fake, and on the kernel by both ways. */
export const cases: readonly Case[] = [
  { name: "nothing", delete: [], left: tracked },
  { name: "all clients of one flow, nothing like it", delete: [flow()], left: tracked.slice(2) },
  { name: "a flow that is not there", delete: [flow({ originalPort: 9 }), flow()], left: tracked.slice(2) },
  { name: "IPv6", delete: [v6], left: tracked.slice(0, -1) },
  {
    name: "SCTP and TCP",
    delete: [flow({ protocol: "SCTP" }), flow({ protocol: "TCP" })],
    left: [...tracked.slice(0, 6), v6],
  },
  { name: "everything", delete: tracked, left: [] },
];

/**
 * One sweep after the other, in a table that has `tracked`: each deletes entries that look like one of its flows. Gives
 * the keys of all that each has seen.
 */
export type Sweeps = (...each: readonly (readonly ConntrackFlow[])[]) => Promise<readonly (readonly string[])[]>;

/** Sweeps by a client. */
export function sweepsBy(conntrack: Conntrack): Sweeps {
  return async (...each) => {
    const seen: (readonly string[])[] = [];
    for (const doomed of each) seen.push(await sweepAll(conntrack, doomed));
    return seen;
  };
}

export async function check(sweeps: Sweeps, given: Case): Promise<void> {
  const keys = (flows: readonly ConntrackFlow[]) => flows.map(flowKey).toSorted();
  const [first = [], second = []] = await sweeps(given.delete, []);
  expect(first.toSorted()).toEqual(keys(tracked));
  expect(second.toSorted()).toEqual(keys(given.left));
}

/** Zones of other networks, as conntrack takes and prints them: of both directions, or of one. */
const OTHER_ZONES = [
  { option: "--zone", number: "5", printed: "zone=5" },
  { option: "--zone", number: "6", printed: "zone=6" },
  { option: "--orig-zone", number: "6", printed: "zone-orig=6" },
  { option: "--reply-zone", number: "7", printed: "zone-reply=7" },
] as const;

/** On the kernel: entries that differ from ours by their zone only are not read, and outlive whatever is deleted. */
export async function checkZones(runner: Runner, sweeps: Sweeps): Promise<void> {
  const flows = [flow(), flow({ protocol: "SCTP" }), v6];
  for (const [client, entry] of [...flows, ...flows].entries()) await track(runner, entry, client);
  for (const [at, { option, number }] of OTHER_ZONES.entries()) {
    for (const entry of flows) await track(runner, entry, 100 + at, [option, number]);
  }
  const [seen = []] = await sweeps(flows);
  expect(seen.toSorted()).toEqual([...flows, ...flows].map(flowKey).toSorted());
  for (const { family, protocol } of flows) {
    const argv = ["conntrack", "-L", "-f", family.toLowerCase(), "-p", protocol.toLowerCase()] as const;
    const left = (await runner.run([...argv])).stdout.match(/zone\S*/g) ?? [];
    expect(left.toSorted()).toEqual(OTHER_ZONES.map(({ printed }) => printed).toSorted());
  }
}

/** Makes an entry as if a client had sent a packet; each call is another client. */
export async function track(
  runner: Runner,
  entry: ConntrackFlow,
  client: number,
  options: readonly string[] = [],
): Promise<void> {
  const source = entry.family === "IPv4" ? "10.144.9.9" : "fd00:144::9";
  const port = String(20_000 + client);
  const state = {
    TCP: ["--state", "ESTABLISHED"],
    UDP: [],
    SCTP: ["--state", "ESTABLISHED", "--orig-vtag", "1", "--reply-vtag", "2"],
  };
  const original = [
    ["-s", source, "-d", entry.originalDestination],
    ["--sport", port, "--dport", String(entry.originalPort)],
  ];
  const reply = [
    ["-r", entry.replySource, "-q", source],
    ["--reply-port-src", String(entry.replyPort), "--reply-port-dst", port],
  ];
  const more = [...original, ...reply, state[entry.protocol], options].flat();
  await runner.run(["conntrack", "-I", "-p", entry.protocol.toLowerCase(), "-t", "1000", ...more]);
}

export const port = (number: number) => Buffer.from([number >> 8, number & 0xff]);

/** One direction of an entry, as the kernel writes it. */
export function tuple(
  type: number,
  source: readonly number[],
  destination: readonly number[],
  ports: [number, number],
) {
  const [from, to] = source.length === 4 ? [1, 2] : [3, 4];
  return nest(
    type,
    nest(1, attribute(from, Buffer.from(source)), attribute(to, Buffer.from(destination))),
    nest(2, attribute(1, Buffer.from([17])), attribute(2, port(ports[0])), attribute(3, port(ports[1]))),
  );
}

const CLIENT = [10, 1, 1, 1];
export const original = tuple(1, CLIENT, [10, 96, 0, 10], [1000, 53]);
export const reply = tuple(2, [10, 144, 0, 5], CLIENT, [5353, 1000]);

export function flowKey(flow: ConntrackFlow): string {
  const { family, protocol, originalDestination, originalPort, replySource, replyPort } = flow;
  return [family, protocol, originalDestination, originalPort, replySource, replyPort].join(" ");
}

export type Kind = Pick<ConntrackFlow, "family" | "protocol">;

const allKinds: readonly Kind[] = (["IPv4", "IPv6"] as const).flatMap((family) =>
  (["TCP", "UDP", "SCTP"] as const).map((protocol) => ({ family, protocol })),
);

/** Sweeps families and protocols of entries that look like one of the flows; gives the keys of all it has seen. */
export async function sweepAll(
  conntrack: Conntrack,
  doomed: readonly ConntrackFlow[],
  kinds: readonly Kind[] = allKinds,
): Promise<readonly string[]> {
  const keys = new Set(doomed.map(flowKey));
  const seen: string[] = [];
  for (const { family, protocol } of kinds) {
    await conntrack.sweep(family, protocol, (flows) => {
      const keyed = flows.map((flow) => ({ flow, key: flowKey(flow) }));
      for (const { key } of keyed) seen.push(key);
      return keyed.filter(({ key }) => keys.has(key)).map(({ flow }) => flow);
    });
  }
  return seen;
}
