import type { Conntrack, ConntrackFlow } from "../conntrack/conntrack.ts";
import type { IPFamily, Protocol } from "../family.ts";
import type { Argv } from "../runner/runner.ts";
import { Faults, killed, singleStep } from "./faults.ts";

/** A connection tracking table in memory. Each `track` is one client's entry. */
export class FakeConntrack implements Conntrack {
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
    this.#entries.push(...flows);
  }

  async *list(family: IPFamily, protocol: Protocol): AsyncGenerator<ConntrackFlow, void, void> {
    const argv = ["conntrack", "-L", "-f", family.toLowerCase(), "-p", protocol.toLowerCase()] as const;
    yield* await singleStep(this.faults, [...argv], () =>
      this.#entries.filter((entry) => entry.family === family && entry.protocol === protocol),
    );
  }

  /** Killed half way, the flows before that are gone. */
  async delete(flows: Iterable<ConntrackFlow>): Promise<void> {
    const gone = [...new Set(Array.from(flows, keyOf))];
    if (gone.length === 0) return;
    const argv: Argv = ["conntrack", "-R", "commands"];
    const fault = await this.faults.enter(argv);
    const reached = new Set(fault?.kind === "kill" ? gone.slice(0, fault.transactions) : gone);
    this.#entries = this.#entries.filter((entry) => !reached.has(keyOf(entry)));
    if (fault !== undefined) throw killed(argv);
  }
}

function keyOf(flow: ConntrackFlow): string {
  const { family, protocol, originalDestination, originalPort, replySource, replyPort } = flow;
  return [family, protocol, originalDestination, originalPort, replySource, replyPort].join(" ");
}
