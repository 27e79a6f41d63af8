import { expect } from "vitest";
import type { ConntrackFlow, Runner } from "../../src/index.ts";
import { flowKey } from "./sweep-all.ts";

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
 * Deletes entries that look like one of the flows, in a table that has `tracked`; gives the keys of all it has seen.
 */
export type Sweep = (doomed: readonly ConntrackFlow[]) => Promise<readonly string[]>;

export async function check(sweep: Sweep, given: Case): Promise<void> {
  const keys = (flows: readonly ConntrackFlow[]) => flows.map(flowKey).toSorted();
  expect((await sweep(given.delete)).toSorted()).toEqual(keys(tracked));
  expect((await sweep([])).toSorted()).toEqual(keys(given.left));
}

/** Zones of other networks, as conntrack takes and prints them: of both directions, or of one. */
const OTHER_ZONES = [
  { option: "--zone", number: "5", printed: "zone=5" },
  { option: "--zone", number: "6", printed: "zone=6" },
  { option: "--orig-zone", number: "6", printed: "zone-orig=6" },
  { option: "--reply-zone", number: "7", printed: "zone-reply=7" },
] as const;

/** On the kernel: entries that differ from ours by their zone only are not read, and outlive whatever is deleted. */
export async function checkZones(runner: Runner, sweep: Sweep): Promise<void> {
  const flows = [flow(), flow({ protocol: "SCTP" }), v6];
  for (const [client, entry] of [...flows, ...flows].entries()) await track(runner, entry, client);
  for (const [at, { option, number }] of OTHER_ZONES.entries()) {
    for (const entry of flows) await track(runner, entry, 100 + at, [option, number]);
  }
  expect((await sweep(flows)).toSorted()).toEqual([...flows, ...flows].map(flowKey).toSorted());
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
