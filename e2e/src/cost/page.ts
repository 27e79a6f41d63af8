import { markdownTable } from "@fairlead/tooling/markdown-table";
import { type Counted, type KernelCounts, ratioIn } from "./counted.ts";
import { DIRECT_GUEST } from "./guests.ts";
import { TARGETS } from "./targets.ts";
import { ALL_UNITS, OTHER_MODES_UNITS, SUBJECTS, UNITS, type Unit } from "./units.ts";

/** The page that the tables are on. */
export const PAGE = new URL("../../../docs/fast-path.md", import.meta.url);

const BEGIN = "<!-- counted: pnpm e2e --suite cost -->";
const END = "<!-- end -->";
/** The size that the page shows; ratios hardly differ between sizes, and e2e/counted.json has the others. */
const SIZE = 1000;

/** @throws Error when the page has no place for them */
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
    "instructions, relative to kube-proxy v1.37.1 in nftables mode",
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
