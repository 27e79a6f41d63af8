import type { Nfacct, NfacctCount, NfacctResult } from "../nfacct/nfacct.ts";
import { Faults, singleStep } from "./faults.ts";

/** The kernel that the fake stands for. */
export interface FakeNfacctOptions {
  /** Shared with other fakes; default: its own, without any fault. */
  readonly faults?: Faults;
  /** False: a kernel without nfnetlink_acct. Default true. */
  readonly supported?: boolean;
}

/** Named counters in memory. Given to a `FakeIptables`, rules may name those that are here and no others. */
export class FakeNfacct implements Nfacct {
  /** What goes wrong, and which calls there were. */
  readonly faults: Faults;
  readonly #supported: boolean;
  readonly #counts = new Map<string, NfacctCount>();

  constructor(options: FakeNfacctOptions = {}) {
    this.faults = options.faults ?? new Faults();
    this.#supported = options.supported ?? true;
  }

  /** Whether there is a counter of this name. */
  has(name: string): boolean {
    return this.#counts.has(name);
  }

  /**
   * Counts packets, as a rule that names the counter would.
   *
   * @throws Error for a counter that does not exist
   */
  count(name: string, packets: number, bytes: number): void {
    const before = this.#counts.get(name);
    if (before === undefined) throw new Error(`no nfacct object ${name}`);
    this.#counts.set(name, { packets: before.packets + packets, bytes: before.bytes + bytes });
  }

  ensure(name: string): Promise<NfacctResult> {
    return singleStep(this.faults, ["nfacct", "add", name], () => {
      if (!this.#supported)
        return { ok: false, reason: "nfacct: Operation not supported; the kernel may lack nfnetlink_acct" };
      if (!this.has(name)) this.#counts.set(name, { packets: 0, bytes: 0 });
      return { ok: true };
    });
  }

  read(name: string): Promise<NfacctCount | undefined> {
    return singleStep(this.faults, ["nfacct", "get", name], () => this.#counts.get(name));
  }
}
