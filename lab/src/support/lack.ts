import { isProgram } from "./machine.ts";

/** What this machine lacks for a run. */
export interface Lack {
  /** One line: who needs what, or why it cannot be. */
  readonly what: string;
  /** The Debian package that brings it; absent where none does. */
  readonly debian?: string;
}

export interface NeededProgram {
  /** Who runs it: `ovn`, `kind`. */
  readonly by: string;
  readonly program: string;
  readonly debian: string;
}

/** Those of the programs that this machine does not have. */
export async function lackingPrograms(
  needed: readonly NeededProgram[],
  isThere: (program: string) => Promise<boolean> = isProgram,
): Promise<readonly Lack[]> {
  const there = await Promise.all(needed.map(({ program }) => isThere(program)));
  return needed
    .filter((_, index) => !there[index])
    .map(({ by, program, debian }) => ({ what: `${by} needs ${program}`, debian }));
}

/** What is told as a text, or as nothing where all is there. */
export async function lackOf(missing: Promise<string | undefined>): Promise<readonly Lack[]> {
  const what = await missing;
  return what === undefined ? [] : [{ what }];
}

/** A line for each, and one command that installs all packages. */
export function lackText(lacks: readonly Lack[]): string {
  const packages = new Set(lacks.flatMap(({ debian }) => debian ?? []));
  const install = packages.size === 0 ? [] : [`apt-get install -y --no-install-recommends ${[...packages].join(" ")}`];
  return [...lacks.map(({ what }) => what), ...install].join("\n");
}
