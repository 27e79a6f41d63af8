/**
 * `pnpm e2e --suite cost`: counts in all guests, writes the tables of docs/fast-path.md and compares with the
 * budgets.
 */

import { readFile, writeFile } from "node:fs/promises";
import { FOLLOWED_KUBERNETES, kubeProxyProgram } from "@fairlead/lab/control-plane/programs";
import { missingForCounting } from "@fairlead/lab/qemu/boot";
import { KERNELS, type KernelVersion } from "@fairlead/lab/qemu/kernel";
import { markdownTable } from "@fairlead/tooling/markdown-table";
import { CHANGE_SIZES, DIRECT_GUEST, GUESTS, ONE_SIZE, WAYS } from "./guests.ts";
import {
  ALL_UNITS,
  CHANGE,
  type Counted,
  type KernelCounts,
  OTHER_MODES_UNITS,
  ratioIn,
  readCounted,
  SUBJECTS,
  UNITS,
  type Unit,
  withGuest,
  writeCounted,
} from "./measure.ts";

const LACKING = 3;

/**
 * Counts in all guests on all kernels, or in those whose names match; keeps the counts, writes the tables of
 * docs/fast-path.md, and says which budgets are exceeded.
 *
 * @param spec of `KERNEL GUEST`, such as `6.12 one node 10`
 * @returns an exit code
 */
export async function runCostSuite(spec: RegExp | undefined, progress: (line: string) => void): Promise<number> {
  const missing = await missingForCounting(["iptables-legacy", "nfacct", "ipset", "ipvsadm"]);
  if (missing !== undefined) {
    progress(missing);
    return LACKING;
  }
  // The keys are what it was written with.
  const versions = Object.keys(KERNELS) as KernelVersion[];
  const wanted = versions.flatMap((version) => GUESTS.map((guest) => ({ version, guest })));
  const chosen = wanted.filter(({ version, guest }) => spec?.test(`${version} ${guest.name}`) ?? true);
  const kubeProxy = await kubeProxyProgram(FOLLOWED_KUBERNETES, progress);
  let counted: Counted = await readCounted();
  for (const { version, guest } of chosen) {
    const started = performance.now();
    const { release, counts } = await guest.count(version, kubeProxy);
    progress(`${version} ${guest.name}: ${Math.round((performance.now() - started) / 1000)} s`);
    counted = withGuest(counted, version, { release, kubeProxy: FOLLOWED_KUBERNETES }, guest.name, counts);
    await writeCounted(counted);
  }
  await writeFile(PAGE, withTables(await readFile(PAGE, "utf8"), counted));
  const missed = missedBudgets(counted);
  for (const line of missed) progress(line);
  return missed.length === 0 ? 0 : 1;
}

/** What the fast path is to cost at most. */
interface Target {
  readonly what: string;
  readonly most: number;
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

const TARGETS: readonly Target[] = [
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
  ...CHANGE_SIZES.map(changeTarget),
  { what: "the same, largest of all sizes to smallest", most: 1.02, tolerance: 0.005, counted: spread },
];

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

export const PAGE = new URL("../../../docs/fast-path.md", import.meta.url);

const BEGIN = "<!-- counted: pnpm e2e --suite cost -->";
const END = "<!-- end -->";
/** The size that the page shows; ratios hardly differ between sizes, and e2e/counted.json has the others. */
const SIZE = 1000;

export function withTables(page: string, counted: Counted): string {
  const [before = "", rest = ""] = page.split(BEGIN);
  const [, after] = rest.split(END);
  if (after === undefined) throw new Error(`docs/fast-path.md has no place for the tables between ${BEGIN} and ${END}`);
  return `${before}${BEGIN}\n\n${tables(counted)}\n\n${END}${after}`;
}

function tables(counted: Counted): string {
  const kernels = Object.values(counted);
  return [
    targets(kernels),
    "At 1,000 services:",
    ofServices(kernels),
    "Packets from pod to pod that belong to no service:",
    direct(kernels),
    "The other modes, instructions at 1,000 services:",
    otherModes(kernels),
  ].join("\n\n");
}

function targets(kernels: readonly KernelCounts[]): string {
  const head = [
    `instructions, relative to kube-proxy ${[...new Set(kernels.map((one) => one.kubeProxy))].join(", ")} in nftables mode`,
    "at most",
    ...kernels.map(({ release }) => `Linux ${release}`),
  ];
  const rows = TARGETS.map(({ what, most, counted }) => [
    what,
    most.toFixed(2),
    ...kernels.map((kernel) => shown(counted(kernel))),
  ]);
  return table(head, rows);
}

function ofServices(kernels: readonly KernelCounts[]): string {
  const { base, ...others } = SUBJECTS;
  const head = kernels.flatMap(({ release }) => [`Linux ${release}, ${base}, instructions`, ...Object.values(others)]);
  const row = (unit: Unit) => [
    UNITS[unit].what,
    ...kernels.flatMap(({ guests: { [`one node ${SIZE}`]: guest } }) => [
      number(guest?.[base]?.[unit]),
      ...Object.values(others).map((subject) => shown(ratioIn(guest, subject, unit, base))),
    ]),
  ];
  return table(["packets of services", ...head], ALL_UNITS.map(row));
}

function direct(kernels: readonly KernelCounts[]): string {
  const { base, own, fast } = SUBJECTS;
  const head = kernels.flatMap(({ release }) => [`Linux ${release}, ${base}, instructions`, own, fast]);
  const row = (unit: Unit) => [
    UNITS[unit].what,
    ...kernels.flatMap(({ guests: { [DIRECT_GUEST]: guest } }) => [
      number(guest?.[base]?.[unit]),
      ...[own, fast].map((subject) => shown(ratioIn(guest, subject, unit, base))),
    ]),
  ];
  return table(["1,000 services", ...head], ALL_UNITS.map(row));
}

/** In ipvs mode Fairlead leaves what kube-proxy does, as golden files say. */
function otherModes(kernels: readonly KernelCounts[]): string {
  const columns = [
    { title: "kube-proxy, iptables", guest: `iptables ${SIZE}`, subject: SUBJECTS.base },
    { title: "Fairlead, iptables", guest: `iptables ${SIZE}`, subject: SUBJECTS.own },
    { title: "Fairlead, ipvs", guest: `ipvs ${SIZE}`, subject: SUBJECTS.own },
  ];
  const row = (unit: Unit) => [
    UNITS[unit].what,
    ...kernels.flatMap(({ guests }) => columns.map(({ guest, subject }) => number(guests[guest]?.[subject]?.[unit]))),
  ];
  const head = kernels.flatMap(({ release }) => [
    `Linux ${release}, kube-proxy, iptables`,
    ...columns.slice(1).map(({ title }) => title),
  ]);
  return table(["", ...head], OTHER_MODES_UNITS.map(row));
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return markdownTable(head, rows).join("\n");
}

function shown(ratio: number | undefined): string {
  return ratio === undefined ? "not counted" : ratio.toFixed(2);
}

function number(instructions: number | undefined): string {
  return instructions === undefined ? "not counted" : Math.round(instructions).toLocaleString("en-US");
}
