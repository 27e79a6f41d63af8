import { attribute, nest } from "@fairlead/netfilter/netlink";
import { expect } from "vitest";
import { withCommandFile } from "../../src/conntrack/conntrack.ts";
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

/** In a table that has `tracked`: a sweep sees all, deletes what looks like a flow of the case, and leaves the rest. */
export async function check(conntrack: Conntrack, given: Case): Promise<void> {
  const keys = (flows: readonly ConntrackFlow[]) => flows.map(flowKey).toSorted();
  expect((await sweepAll(conntrack, given.delete)).toSorted()).toEqual(keys(tracked));
  expect((await sweepAll(conntrack, [])).toSorted()).toEqual(keys(given.left));
}

/** Zones of other networks, as conntrack takes and prints them: of both directions, or of one. */
const OTHER_ZONES = [
  { option: "--zone", number: "5", printed: "zone=5" },
  { option: "--zone", number: "6", printed: "zone=6" },
  { option: "--orig-zone", number: "6", printed: "zone-orig=6" },
  { option: "--reply-zone", number: "7", printed: "zone-reply=7" },
] as const;

/** On the kernel: entries that differ from ours by their zone only are not read, and outlive whatever is deleted. */
export async function checkZones(runner: Runner, conntrack: Conntrack): Promise<void> {
  const flows = [flow(), flow({ protocol: "SCTP" }), v6];
  const elsewhere = OTHER_ZONES.flatMap(({ option, number }, at) =>
    flows.map((entry): Tracked => [entry, 100 + at, `${option} ${number}`]),
  );
  await track(runner, [...clientsOf([...flows, ...flows]), ...elsewhere]);
  const seen = await sweepAll(conntrack, flows);
  expect(seen.toSorted()).toEqual([...flows, ...flows].map(flowKey).toSorted());
  for (const { family, protocol } of flows) {
    const argv = ["conntrack", "-L", "-f", family.toLowerCase(), "-p", protocol.toLowerCase()] as const;
    const left = (await runner.run([...argv])).stdout.match(/zone\S*/g) ?? [];
    expect(left.toSorted()).toEqual(OTHER_ZONES.map(({ printed }) => printed).toSorted());
  }
}

/** Each is of another client. */
export function clientsOf(flows: readonly ConntrackFlow[]): readonly Tracked[] {
  return flows.map((entry, client) => [entry, client]);
}

export type Tracked = readonly [entry: ConntrackFlow, client: number, options?: string];

/** Makes entries as if clients had sent packets: one process for all. */
export async function track(runner: Runner, entries: Iterable<Tracked>): Promise<void> {
  // It prints each entry.
  const silent = ["sh", "-c", 'exec conntrack -R "$0" >/dev/null'] as const;
  await withCommandFile(Array.from(entries, insertion), (path) => runner.run([...silent, path]));
}

const STATE = {
  TCP: "--state ESTABLISHED",
  UDP: "",
  SCTP: "--state ESTABLISHED --orig-vtag 1 --reply-vtag 2",
} as const;

/** A line for `conntrack -R`. */
function insertion([entry, client, options = ""]: Tracked): string {
  const source = entry.family === "IPv4" ? `10.144.${(client >> 8) & 0xff}.${client & 0xff}` : `fd00:144::9:${client}`;
  const sourcePort = 20_000 + (client % 10_000);
  const original = `-s ${source} -d ${entry.originalDestination} --sport ${sourcePort} --dport ${entry.originalPort}`;
  const reply = `-r ${entry.replySource} -q ${source} --reply-port-src ${entry.replyPort} --reply-port-dst ${sourcePort}`;
  const protocol = `-p ${entry.protocol.toLowerCase()} -t 1000 ${STATE[entry.protocol]}`;
  return `-I ${protocol} ${original} ${reply} ${options}\n`;
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
