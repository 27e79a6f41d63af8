import type { Choose, Conntrack, ConntrackFlow } from "../conntrack/conntrack.ts";
import type { IPFamily, Protocol } from "../family.ts";
import type { Argv } from "../runner/runner.ts";
import { Faults, killed, singleStep } from "./faults.ts";

/** A connection tracking table in memory. Each `track` is one client's entry. */
export class FakeConntrack implements Conntrack {
  /** What goes wrong, and which calls there were. */
  readonly faults: Faults;
  #entries: ConntrackFlow[] = [];

  constructor(faults = new Faults()) {
    this.faults = faults;
  }

  /** Entries that are left, in the order of their making. */
  get entries(): readonly ConntrackFlow[] {
    return this.#entries;
  }

  /** Makes entries, as traffic would. */
  track(...flows: readonly ConntrackFlow[]): void {
    // Each is an entry of its own, however alike they are.
    this.#entries.push(...flows.map((flow) => ({ ...flow })));
  }

  /** Two steps, as two processes: reading, and deleting where something was picked. Killed half way, some are left. */
  async sweep(family: IPFamily, protocol: Protocol, choose: Choose): Promise<number> {
    const selection = ["-f", family.toLowerCase(), "-p", protocol.toLowerCase()] as const;
    const read = await singleStep(this.faults, ["conntrack", "-L", ...selection], () =>
      this.#entries.filter((entry) => entry.family === family && entry.protocol === protocol),
    );
    const chosen = [...choose(read)];
    if (chosen.length > 0) await this.#delete(chosen);
    return chosen.length;
  }

  async #delete(flows: readonly ConntrackFlow[]): Promise<void> {
    const argv: Argv = ["conntrack", "-R", "commands"];
    const fault = await this.faults.enter(argv);
    const gone = new Set(fault?.kind === "kill" ? flows.slice(0, fault.transactions) : flows);
    this.#entries = this.#entries.filter((entry) => !gone.has(entry));
    if (fault !== undefined) throw killed(argv);
  }
}
