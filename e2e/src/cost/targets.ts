import { type Counted, type KernelCounts, ratioIn } from "./counted.ts";
import { AGENT_GUEST, CHANGE_SIZES, ONE_SIZE, WAYS } from "./guests.ts";
import { CHANGE, SUBJECTS, UNITS, type Unit } from "./units.ts";

/** What the fast path is to cost at most. */
export interface Target {
  readonly what: string;
  readonly most: number;
  /** How far counts of one kernel differ from run to run. */
  readonly tolerance: number;
  /** Undefined: that was not counted. */
  counted(kernel: KernelCounts): number | undefined;
}

/** How far counts of one kernel differ from run to run. */
export const TOLERANCE: Readonly<Record<Unit, number>> = {
  connect: 0.01,
  request: 0.01,
  query: 0.02,
  datagram: 0.01,
  stream: 0.01,
  packets: 0.03,
};

const ESTABLISHED = ["request", "datagram", "stream", "packets"] as const satisfies readonly Unit[];
const BETWEEN_NODES = { routed: 0.87, vxlan: 0.92 } as const;

export const TARGETS: readonly Target[] = [
  packetTarget("one node", "connect", 1),
  packetTarget("one node", "query", 1.03),
  packetTarget("one node", "request", 0.8),
  packetTarget("one node", "datagram", 0.8),
  packetTarget("one node", "stream", 0.83),
  packetTarget("one node", "packets", 0.75),
  ...WAYS.flatMap((way) => [
    packetTarget(way, "connect", 1),
    packetTarget(way, "query", 1.03),
    ...ESTABLISHED.map((unit) => packetTarget(way, unit, BETWEEN_NODES[way])),
  ]),
  agentTarget("request", 0.8),
  agentTarget("datagram", 0.8),
  ...CHANGE_SIZES.map(changeTarget),
  { what: "the same, largest of all sizes to smallest", most: 1.02, tolerance: 0.005, counted: spread },
];

/** Lines for those that are exceeded. */
export function missedBudgets(counted: Counted): readonly string[] {
  return Object.values(counted).flatMap((kernel) =>
    TARGETS.flatMap(({ what, most, tolerance, counted: of }) => {
      const found = of(kernel);
      if (found === undefined || found <= most + tolerance) return [];
      return [`Linux ${kernel.release}, ${what}: ${found.toFixed(3)}, at most ${most} is allowed`];
    }),
  );
}

function packetTarget(way: "one node" | (typeof WAYS)[number], unit: Unit, most: number): Target {
  return {
    what: way === "one node" ? UNITS[unit].what : `the same between two nodes, ${way}: ${UNITS[unit].what}`,
    most,
    tolerance: TOLERANCE[unit],
    counted: ({ guests }) => ratioIn(guests[`${way} ${ONE_SIZE}`], SUBJECTS.fast, unit, SUBJECTS.base),
  };
}

/** Of rules that the built agent wrote in the guest, where it has tested the kernel's flowtables. */
function agentTarget(unit: Unit, most: number): Target {
  return {
    what: `${UNITS[unit].what}, the built agent in the guest, 10 services`,
    most,
    tolerance: TOLERANCE[unit],
    counted: ({ guests }) => ratioIn(guests[AGENT_GUEST], SUBJECTS.fast, unit, SUBJECTS.base),
  };
}

/** In relation to Fairlead without the option. */
function changeTarget(services: number): Target {
  return {
    what: `change of one endpoint at ${services.toLocaleString("en-US")} services, to Fairlead without the option`,
    most: 1.05,
    tolerance: 0.01,
    counted: ({ guests }) => ratioIn(guests[`change ${services}`], SUBJECTS.fast, CHANGE, SUBJECTS.own),
  };
}

function spread({ guests }: KernelCounts): number | undefined {
  const found = CHANGE_SIZES.map((services) => guests[`change ${services}`]?.[SUBJECTS.fast]?.[CHANGE]);
  const all = found.filter((one) => one !== undefined);
  return all.length < found.length ? undefined : Math.max(...all) / Math.min(...all);
}
