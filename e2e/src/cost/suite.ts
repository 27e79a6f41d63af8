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

/** Where client and server are. */
const PLACES = ["one node", ...WAYS] as const;
type Place = (typeof PLACES)[number];

const PACKET_BUDGETS: Readonly<Record<Place, Readonly<Record<Unit, number>>>> = {
  "one node": { connect: 1, query: 1.03, request: 0.8, datagram: 0.8, stream: 0.83, packets: 0.75 },
  routed: betweenNodes(0.87),
  vxlan: betweenNodes(0.92),
};

function betweenNodes(most: number): Readonly<Record<Unit, number>> {
  return { connect: 1, query: 1.03, request: most, datagram: most, stream: most, packets: most };
}

const CHANGE_TARGETS: readonly Target[] = [
  ...CHANGE_SIZES.map(changeTarget),
  { what: "change of one endpoint, largest of all sizes to smallest", most: 1.02, tolerance: 0.005, counted: spread },
];

const TARGETS: readonly Target[] = [
  ...PLACES.flatMap((place) => ALL_UNITS.map((unit) => packetTarget(place, unit))),
  ...CHANGE_TARGETS,
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

function packetTarget(place: Place, unit: Unit): Target {
  return {
    what: place === "one node" ? UNITS[unit].what : `two nodes, ${place}: ${UNITS[unit].what}`,
    most: PACKET_BUDGETS[place][unit],
    tolerance: TOLERANCE[unit],
    counted: ({ guests }) => ratioIn(guests[`${place} ${ONE_SIZE}`], SUBJECTS.fast, unit, SUBJECTS.base),
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
  const kubeProxy = [...new Set(kernels.map((one) => one.kubeProxy))].join(", ");
  return [
    `Cells have counts on ${kernels.map(({ release }) => `Linux ${release}`).join("; ")}. With the fast path, relative to kube-proxy ${kubeProxy} in nftables mode, and at most (≤):`,
    packets(kernels),
    "A change of one endpoint with the fast path, relative to Fairlead without it:",
    changes(kernels),
    `At ${SIZE.toLocaleString("en-US")} services, instructions of kube-proxy and what others take relative to it; "direct" are packets from pod to pod that belong to no service:`,
    withoutFastPath(kernels),
    "The other modes, instructions:",
    otherModes(kernels),
  ].join("\n\n");
}

function packets(kernels: readonly KernelCounts[]): string {
  const head = ["", ...PLACES.map((place) => (place === "one node" ? place : `two nodes, ${place}`))];
  const row = (unit: Unit) => [
    UNITS[unit].what,
    ...PLACES.map((place) => budgeted(kernels, packetTarget(place, unit))),
  ];
  return table(head, ALL_UNITS.map(row));
}

function changes(kernels: readonly KernelCounts[]): string {
  const head = CHANGE_SIZES.map((services) => `${services.toLocaleString("en-US")} services`);
  return table([...head, "largest to smallest"], [CHANGE_TARGETS.map((target) => budgeted(kernels, target))]);
}

function budgeted(kernels: readonly KernelCounts[], { most, counted }: Target): string {
  return `${cell(kernels, (kernel) => shown(counted(kernel)))} ≤ ${most.toFixed(2)}`;
}

function withoutFastPath(kernels: readonly KernelCounts[]): string {
  const { base, own, fast, excepted } = SUBJECTS;
  const ofServices = `one node ${SIZE}`;
  const columns = [
    { title: base, guest: ofServices, subject: base },
    { title: own, guest: ofServices, subject: own },
    { title: excepted, guest: ofServices, subject: excepted },
    { title: `direct: ${base}`, guest: DIRECT_GUEST, subject: base },
    { title: own, guest: DIRECT_GUEST, subject: own },
    { title: fast, guest: DIRECT_GUEST, subject: fast },
  ];
  const row = (unit: Unit) => [
    UNITS[unit].what,
    ...columns.map(({ guest, subject }) =>
      cell(kernels, ({ guests: { [guest]: counts } }) =>
        subject === base ? number(counts?.[base]?.[unit]) : shown(ratioIn(counts, subject, unit, base)),
      ),
    ),
  ];
  return table(["", ...columns.map(({ title }) => title)], ALL_UNITS.map(row));
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
    ...columns.map(({ guest, subject }) => cell(kernels, ({ guests }) => number(guests[guest]?.[subject]?.[unit]))),
  ];
  return table(["", ...columns.map(({ title }) => title)], OTHER_MODES_UNITS.map(row));
}

function cell(kernels: readonly KernelCounts[], of: (kernel: KernelCounts) => string): string {
  return kernels.map(of).join("; ");
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
