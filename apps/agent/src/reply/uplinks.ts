import { mostUplinks, type ReplyViaSettings } from "@fairlead/config";
import type { RouteEntry } from "@fairlead/kernel";

/** An interface that answers leave by when their client came in by it. */
export interface Uplink {
  readonly interface: string;
  /** The connection mark of its clients, within the mask. */
  readonly mark: number;
  /** The routing table by which their answers are routed. */
  readonly table: number;
  /** Whether the table is Fairlead's, which copies the routes of the table `main` by that interface. */
  readonly ours: boolean;
}

export interface ChosenUplinks {
  readonly uplinks: readonly Uplink[];
  /** Interfaces for which the mask has no mark left. */
  readonly leftOut: readonly string[];
}

/**
 * The uplinks that there are now. A number once given stays an interface's until another interface needs it, so that
 * connections keep their way when an interface goes and returns.
 *
 * @param main the routes of both families
 * @param numbers of interfaces that had one; it is kept up
 */
export function chooseUplinks(
  settings: ReplyViaSettings,
  main: readonly RouteEntry[],
  numbers: Map<string, number>,
): ChosenUplinks {
  const { uplinks, markMask, firstTable } = settings;
  if (uplinks !== "auto") {
    const listed = uplinks.map(({ interface: name, table }, at): Uplink => {
      const mark = markOf(at, markMask);
      return { interface: name, mark, table: table ?? firstTable + at, ours: table === undefined };
    });
    return { uplinks: listed, leftOut: [] };
  }
  const names = [...new Set(main.filter(isDefault).map((route) => route.interface))].sort();
  const most = mostUplinks(markMask);
  const leftOut = names.filter((name) => !giveNumber(name, names, numbers, most));
  const chosen = names.flatMap((name): Uplink[] => {
    const at = numbers.get(name);
    return at === undefined
      ? []
      : [{ interface: name, mark: markOf(at, markMask), table: firstTable + at, ours: true }];
  });
  return { uplinks: chosen, leftOut };
}

function isDefault({ destination }: RouteEntry): boolean {
  return destination === "default";
}

/** Those that are there come before those that have gone. */
function giveNumber(name: string, present: readonly string[], numbers: Map<string, number>, most: number): boolean {
  if (numbers.has(name)) return true;
  const taken = new Map(Array.from(numbers, ([one, at]) => [at, one]));
  const all = Array.from({ length: most }, (_, at) => at);
  const free = all.find((at) => !taken.has(at)) ?? all.find((at) => !present.includes(taken.get(at) ?? ""));
  if (free === undefined) return false;
  const before = taken.get(free);
  if (before !== undefined) numbers.delete(before);
  numbers.set(name, free);
  return true;
}

/**
 * The mark of a number: the mask's lowest bit, which all of them have, so that another program's bits within the mask
 * are not taken for one, and the number in the other bits.
 */
function markOf(number: number, mask: number): number {
  const [lowest = 0, ...others] = bitsOf(mask);
  const set = others.filter((_, at) => Math.floor(number / 2 ** at) % 2 === 1);
  return [lowest, ...set].reduce((mark, bit) => mark + 2 ** bit, 0);
}

function bitsOf(mask: number): readonly number[] {
  return Array.from({ length: 32 }, (_, bit) => bit).filter((bit) => Math.floor(mask / 2 ** bit) % 2 === 1);
}
