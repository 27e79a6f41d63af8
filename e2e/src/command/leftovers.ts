import { type RunInventory, type RunMark, takeRunInventory } from "@fairlead/lab/support/run-inventory";
import { waitUntil } from "@fairlead/lab/support/wait-until";

/** Counts what a run has on this machine before it, while it is at work, and after it. */
export interface LeftoverWatch {
  /** Counts while something stands; the most that was seen is told. */
  look(): Promise<void>;
  /** Waits a little for what is about to end, and counts for the last time. */
  finish(): Promise<Leftovers>;
}

interface Leftovers {
  /** Before, during and after, a line for each kind of thing. */
  readonly table: string;
  /** What is there after the run and was not before, or the other way round, in words. */
  readonly changed: readonly string[];
  /**
   * Nothing of the run is left. Of the machine's own another program may have changed something meanwhile: that counts
   * where CI is set, where there is no other program.
   */
  readonly clean: boolean;
}

const END_MS = 10_000;

type Kinds = readonly (readonly [keyof RunInventory, string])[];

const OF_RUN: Kinds = [
  ["namespaces", "network namespaces of the run"],
  ["processes", "processes of the run"],
  ["folders", "temporary folders of the run"],
];
const OF_MACHINE: Kinds = [
  ["links", "network interfaces of the machine"],
  ["rules", "lines of the machine's iptables rules"],
];

/** Before anything that carries the mark is started. @param mark of the run */
export async function watchLeftovers(mark: RunMark, { patienceMs = END_MS } = {}): Promise<LeftoverWatch> {
  const before = await takeRunInventory(mark);
  const namespaces = new Set<string>();
  let during = before;
  const finish = async () => {
    let after = await takeRunInventory(mark, namespaces);
    const settled = waitUntil("an end", patienceMs, async () => {
      after = await takeRunInventory(mark, namespaces);
      return changes(OF_RUN, before, after).length === 0 ? true : undefined;
    });
    await settled.catch(() => {});
    const changed = [...changes(OF_RUN, before, after), ...changes(OF_MACHINE, before, after)];
    const counted = process.env["CI"] ? changed : changes(OF_RUN, before, after);
    return { table: table([before, during, after]), changed, clean: counted.length === 0 };
  };
  return {
    look: async () => {
      const now = await takeRunInventory(mark);
      for (const one of now.namespaces) namespaces.add(one);
      if (now.processes.length > during.processes.length) during = now;
    },
    finish,
  };
}

function changes(kinds: Kinds, before: RunInventory, after: RunInventory): readonly string[] {
  return kinds.flatMap(([kind]) => [
    ...after[kind].filter((one) => !before[kind].includes(one)).map((one) => `${kind}: left behind ${one}`),
    ...before[kind].filter((one) => !after[kind].includes(one)).map((one) => `${kind}: gone ${one}`),
  ]);
}

function table(columns: readonly RunInventory[]): string {
  const kinds = [...OF_RUN, ...OF_MACHINE];
  const width = Math.max(...kinds.map(([, title]) => title.length));
  const row = (title: string, cells: readonly (string | number)[]) =>
    `${title.padEnd(width)} ${cells.map((cell) => String(cell).padStart(7)).join("")}`;
  return [
    row("", ["before", "during", "after"]),
    ...kinds.map(([kind, title]) =>
      row(
        title,
        columns.map((inventory) => inventory[kind].length),
      ),
    ),
  ].join("\n");
}
