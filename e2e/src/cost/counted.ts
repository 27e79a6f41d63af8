import { readFile, writeFile } from "node:fs/promises";

/** Instructions of each unit, of each subject, in one guest. */
export type GuestCounts = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** What was counted on one kernel, by the guest's name. */
export interface KernelCounts {
  /** As `uname -r` says it. */
  readonly release: string;
  readonly guests: Readonly<Record<string, GuestCounts>>;
}

/** By the kernel's version. */
export type Counted = Readonly<Record<string, KernelCounts>>;

/** What `pnpm e2e --suite cost` counted the last time, guest by guest. */
const COUNTED_FILE = new URL("../../counted.json", import.meta.url);

export async function readCounted(): Promise<Counted> {
  return JSON.parse(await readFile(COUNTED_FILE, "utf8"));
}

export async function writeCounted(counted: Counted): Promise<void> {
  await writeFile(COUNTED_FILE, `${JSON.stringify(counted, undefined, 2)}\n`);
}

/** With what a guest counted in the place of what it counted before; another release forgets all guests. */
export function withGuest(
  counted: Counted,
  version: string,
  release: string,
  name: string,
  counts: GuestCounts,
): Counted {
  const before = counted[version];
  const guests = before?.release === release ? before.guests : {};
  return { ...counted, [version]: { release, guests: { ...guests, [name]: counts } } };
}

/** @returns undefined: one of the two was not counted */
export function ratioIn(guest: GuestCounts | undefined, subject: string, unit: string, of: string): number | undefined {
  const [own, base] = [guest?.[subject]?.[unit], guest?.[of]?.[unit]];
  return own === undefined || base === undefined ? undefined : own / base;
}
