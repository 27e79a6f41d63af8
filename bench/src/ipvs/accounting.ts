import { readFile, writeFile } from "node:fs/promises";
import type { Runner } from "@fairlead/kernel";

/** Counts processes as the kernel's own accounting does: one record of each that has ended. */
export interface Accounting {
  /** The processes that have ended since the last call, by name; those that started no program of their own aside. */
  since(): Promise<Readonly<Record<string, number>>>;
}

/** `struct acct` of the kernel without CONFIG_BSD_PROCESS_ACCT_V3 (include/uapi/linux/acct.h). */
const RECORD = { bytes: 64, flag: 0, name: 36, nameBytes: 16, forkedOnly: 1 } as const;

/** acct(2) on x86-64. */
const CALL = "syscall(163, $ARGV[0]) == 0 or die $!";

export async function startAccounting(runner: Runner, file: string): Promise<Accounting> {
  await writeFile(file, "");
  await runner.run(["perl", "-e", CALL, file]);
  let read = 0;
  return {
    since: async () => {
      const records = (await readFile(file)).subarray(read);
      const whole = records.length - (records.length % RECORD.bytes);
      read += whole;
      return countProcesses(records.subarray(0, whole));
    },
  };
}

export function countProcesses(records: Buffer): Record<string, number> {
  const counts: Record<string, number> = {};
  for (let at = 0; at < records.length; at += RECORD.bytes) {
    if ((records.readUInt8(at + RECORD.flag) & RECORD.forkedOnly) !== 0) continue;
    const name = records.toString("latin1", at + RECORD.name, at + RECORD.name + RECORD.nameBytes).replace(/\0.*/s, "");
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}
