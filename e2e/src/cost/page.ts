import { markdownTable } from "@fairlead/tooling/markdown-table";
import { type Counted, type GuestCounts, type KernelCounts, ratioIn } from "./counted.ts";
import { CHANGE_SIZES, DIRECT_GUEST, OLDER_SIZES, SIZES } from "./guests.ts";
import { TARGETS } from "./targets.ts";
import { ALL_UNITS, CHANGE, OTHER_MODES_UNITS, SUBJECTS, UNITS, type Unit } from "./units.ts";

/** The page that the tables are on. */
export const PAGE = new URL("../../../docs/fast-path.md", import.meta.url);

const BEGIN = "<!-- counted: pnpm e2e --suite cost -->";
const END = "<!-- end -->";

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
    ...kernels.map(bySize),
    "Packets from pod to pod that belong to no service:",
    direct(kernels),
    "A change of one endpoint, instructions of its transaction:",
    changes(kernels),
    "The other modes, instructions:",
    ...kernels.map(otherModes),
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

function bySize({ release, guests }: KernelCounts): string {
  const sizes = SIZES.map((size) => size.toLocaleString("en-US")).join(", ");
  const { base, ...others } = SUBJECTS;
  const each = (cell: (guest: GuestCounts | undefined) => string) =>
    SIZES.map((services) => cell(guests[`one node ${services}`])).join(", ");
  const row = (unit: Unit) => [
    UNITS[unit].what,
    each((guest) => number(guest?.[base]?.[unit])),
    ...Object.values(others).map((subject) => each((guest) => shown(ratioIn(guest, subject, unit, base)))),
  ];
  const head = [`Linux ${release}, ${sizes} services`, `${base}, instructions`, ...Object.values(others)];
  return table(head, ALL_UNITS.map(row));
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
function otherModes({ release, guests }: KernelCounts): string {
  const columns = OLDER_SIZES.flatMap((services) => [
    { title: "kube-proxy, iptables", guest: `iptables ${services}`, subject: SUBJECTS.base, services },
    { title: "Fairlead, iptables", guest: `iptables ${services}`, subject: SUBJECTS.own, services },
    { title: "Fairlead, ipvs", guest: `ipvs ${services}`, subject: SUBJECTS.own, services },
  ]);
  const head = columns.map(({ title, services }) => `${title}, ${services.toLocaleString("en-US")} services`);
  const row = (unit: Unit) => [
    UNITS[unit].what,
    ...columns.map(({ guest, subject }) => number(guests[guest]?.[subject]?.[unit])),
  ];
  return table([`Linux ${release}`, ...head], OTHER_MODES_UNITS.map(row));
}

function changes(kernels: readonly KernelCounts[]): string {
  const head = ["services", ...kernels.flatMap(({ release }) => [`Linux ${release}`, "with the fast path"])];
  const rows = CHANGE_SIZES.map((services) => [
    services.toLocaleString("en-US"),
    ...kernels.flatMap(({ guests }) =>
      [SUBJECTS.own, SUBJECTS.fast].map((subject) => number(guests[`change ${services}`]?.[subject]?.[CHANGE])),
    ),
  ]);
  return table(head, rows);
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
