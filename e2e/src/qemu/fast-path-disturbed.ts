/**
 * Flows that stay open while everything around them changes, with the fast path and without, in the same order and as
 * often: what they live through may not differ.
 */

import { IP_FAMILIES, type IPFamily } from "@fairlead/base";
import type { KernelVersion } from "@fairlead/lab/qemu/kernel";
import { CLIENT, type Configuration, clusterIP, LINKS, OUTSIDE, runOnNode, SERVICES, STATES } from "./fast-path.ts";
import { type Lived, livedIn, NODE, numberIn, type Protocol, provideGuest } from "./guest.ts";

/** Between two changes, in seconds of the guest: long enough for the agent to write each by itself. */
const PAUSE = 0.2;

interface Flows {
  readonly from: string;
  readonly protocol: Protocol;
  readonly port: number;
  readonly to: (family: IPFamily) => string;
}

const PROTOCOLS = ["tcp", "udp"] as const;

const FLOWS: Readonly<Record<string, Flows>> = Object.fromEntries(
  PROTOCOLS.flatMap((protocol) => [
    [`${protocol}-steady`, toService("web", protocol)],
    [`${protocol}-moving`, toService("moving", protocol)],
    [
      `${protocol}-outside`,
      {
        from: OUTSIDE,
        protocol,
        port: SERVICES.web.nodePort,
        to: (family: IPFamily) => LINKS.outside.node[family],
      },
    ],
  ]),
);

const EACH = 16;
const EVERY_MS = 100;

/** What happens between changes, one after the other. */
const DISTURBANCES = {
  "kube-proxy takes over, and back": [
    "end_agent TERM",
    'start_kube_proxy "kube-proxy has synced" kube_proxy_synced',
    "sleep 1",
    "end_kube_proxy",
    "start_agent $configuration",
  ],
  "an agent in iptables mode takes over, and back": [
    "end_agent TERM",
    "start_agent iptables",
    'wait_until "iptables mode has removed the tables" no_tables',
    "end_agent TERM",
    "start_agent $configuration",
  ],
  "devices come and go": [
    "for number in $(seq 10); do ip -n node link add cali-$number type veth peer name peer-$number; done",
    "for number in $(seq 10); do ip -n node link del cali-$number; done",
  ],
  "a device returns under its name": [
    "ip -n node link add cali-0 type veth peer name peer-0",
    "ip -n node link del cali-0",
    "ip -n node link add cali-0 type veth peer name peer-0",
    "ip -n node link del cali-0",
  ],
  "full syncs": ["for _ in $(seq 5); do kill -USR2 $first; sleep 0.2; done"],
  "the agent ends and starts": ["end_agent TERM", "start_agent $configuration"],
  "the agent is killed and starts": ["end_agent KILL", "start_agent $configuration"],
  "an agent without the fast path takes over, and back": [
    "end_agent TERM",
    "start_agent slow",
    "end_agent TERM",
    "start_agent $configuration",
  ],
} as const;

export interface Round {
  readonly lived: Readonly<Record<string, Lived>>;
  /** Connections in the flowtable when the changes begin. */
  readonly offloaded: number;
  /** How often agents have written tables. */
  readonly syncs: number;
}

/**
 * A guest for each configuration, at the same time.
 *
 * @param changes how often endpoints change
 */
export async function disturbedOn(
  version: KernelVersion,
  changes: number,
): Promise<Readonly<Record<Configuration, Round>>> {
  await provideGuest(version);
  const [slow, fast] = await Promise.all([roundOn(version, "slow", changes), roundOn(version, "fast", changes)]);
  return { slow, fast };
}

async function roundOn(version: KernelVersion, configuration: Configuration, changes: number): Promise<Round> {
  const lines = (await runOnNode(version, roundLines(configuration, changes))).split("\n");
  const lived = lines.flatMap((line) => {
    const [name, flows] = line.split(" ");
    return name === undefined || !flows?.startsWith("flows=") ? [] : [[name, livedIn(line)] as const];
  });
  const printed = (name: string) => numberIn(lines.find((line) => line.startsWith(`${name}=`)) ?? "", name);
  return { lived: Object.fromEntries(lived), offloaded: printed("offloaded"), syncs: printed("syncs") };
}

function toService(name: keyof typeof SERVICES, protocol: Protocol): Flows {
  const port = SERVICES[name].ports[protocol];
  return { from: CLIENT, protocol, port, to: (family) => clusterIP(name, family) };
}

function roundLines(configuration: Configuration, changes: number): readonly string[] {
  const kinds = Object.entries(FLOWS).flatMap(([name, flows]) =>
    IP_FAMILIES.map((family) => ({ name: `${name}-${family}`, family, ...flows })),
  );
  return [
    `configuration=${configuration}`,
    "change moving 0",
    "start_agent $configuration",
    ...kinds.map(
      ({ name, from, protocol, port, to, family }) =>
        `start_asking ${name} ${from} ${protocol} ${port} ${to(family)} ${EACH} ${EVERY_MS} 64`,
    ),
    "sleep 1",
    'echo "offloaded=$(on_node conntrack -L 2> /dev/null | grep -c OFFLOAD || true)"',
    ...changeLines(changes),
    "stop_asking",
    'echo "syncs=$((syncs + $(synced)))"',
  ];
}

function changeLines(changes: number): readonly string[] {
  const disturbances = Object.values(DISTURBANCES);
  return disturbances.flatMap((lines) => [
    `for at in $(seq ${Math.ceil(changes / disturbances.length)}); do change moving $((at % ${STATES})); sleep ${PAUSE}; done`,
    ...lines,
  ]);
}

/** What becomes of devices while the agent serves, and whether the flowtable of IPv4 then has which one. */
export const STEPS = {
  "a device that comes": {
    lines: [`ip -n ${NODE} link add cali-7 type veth peer name peer-7`],
    has: "cali-7",
  },
  "a device that is renamed, and no longer named in devices": {
    lines: [`ip -n ${NODE} link set cali-7 name other-7`],
    hasNot: "7",
  },
  "a device that is renamed, and named in devices now": {
    lines: [`ip -n ${NODE} link set other-7 name cali-8`],
    has: "cali-8",
  },
  "a device that goes to another network namespace": {
    lines: [`ip -n ${NODE} link set cali-8 netns ${OUTSIDE}`],
    hasNot: "cali-8",
  },
  "the same, back": {
    lines: [`ip -n ${OUTSIDE} link set cali-8 netns ${NODE}`],
    has: "cali-8",
  },
  "a device that goes to another network namespace and comes back at once": {
    lines: [`ip -n ${NODE} link set cali-8 netns ${OUTSIDE}`, `ip -n ${OUTSIDE} link set cali-8 netns ${NODE}`],
    has: "cali-8",
  },
} as const satisfies Record<string, Step>;

interface Step {
  readonly lines: readonly string[];
  readonly has?: string;
  readonly hasNot?: string;
}

/**
 * The agent has the rights that deploy/ gives it, and the result of an init container. Waits after each step until the
 * flowtable is as it has to be.
 *
 * @returns what the script printed: each step's name once it is
 */
export function followDevices(version: KernelVersion): Promise<string> {
  return runOnNode(version, [
    'flowtable_has() { devices ip | grep -q -e "$1"; }',
    'flowtable_lacks() { ! flowtable_has "$1"; }',
    "init_only fast",
    "start_agent fast",
    ...Object.entries<Step>(STEPS).flatMap(([name, { lines, has, hasNot }]) => [
      ...lines,
      ...(has === undefined ? [] : [`wait_until "${name}" flowtable_has ${has}`]),
      ...(hasNot === undefined ? [] : [`wait_until "${name}" flowtable_lacks ${hasNot}`]),
      `echo "${name}"`,
    ]),
  ]);
}
