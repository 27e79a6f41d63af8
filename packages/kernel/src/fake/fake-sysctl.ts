import type { Sysctl, SysctlResult } from "../sysctl/sysctl.ts";

/** Kernel settings in memory. Keys that it was not given do not exist; while `readOnly`, nothing may be written. */
export class FakeSysctl implements Sysctl {
  /** While true each write fails, as in a container. */
  readOnly = false;
  readonly #values: Map<string, string>;

  constructor(values: Readonly<Record<string, string | number>> = {}) {
    this.#values = new Map(Object.entries(values).map(([key, value]) => [key, String(value)]));
  }

  async read(key: string): Promise<string | undefined> {
    return this.#values.get(key);
  }

  async set(key: string, value: string | number): Promise<SysctlResult> {
    return this.#change(key, String(value), (present) => present === String(value));
  }

  async raise(key: string, value: number): Promise<SysctlResult> {
    return this.#change(key, String(value), (present) => Number(present) >= value);
  }

  #change(key: string, value: string, enough: (present: string) => boolean): SysctlResult {
    const before = this.#values.get(key);
    if (before === undefined) return { outcome: "missing", reason: `sysctl ${key} does not exist` };
    if (enough(before)) return { outcome: "kept", value: before };
    if (this.readOnly) {
      return { outcome: "refused", reason: `sysctl ${key} cannot be changed (/proc/sys is read-only)` };
    }
    this.#values.set(key, value);
    return { outcome: "changed", before, value };
  }
}
