import { sleep, systemClock, type Timers } from "@fairlead/base";
import { type Argv, CommandError } from "../runner.ts";

/**
 * fail: the process does nothing and ends with that code and text. kill: SIGKILL ends it after so many of its
 * transactions (default 0). lost: all is done, but the process is killed before it can say so. delay: it takes so long
 * (may be followed by another fault). What goes by netlink fails with an `errno`, nf_tables at one of its messages,
 * which count from 1.
 */
export type Fault =
  | {
      readonly kind: "fail";
      readonly exitCode?: number;
      readonly stderr?: string;
      readonly errno?: string;
      readonly message?: number;
    }
  | { readonly kind: "kill"; readonly transactions?: number }
  | { readonly kind: "lost" }
  | { readonly kind: "delay"; readonly ms: number; readonly next?: Fault };

/** One process that the real client would have started. */
export interface FakeCall {
  /** From 1, over all fakes that share the faults. */
  readonly number: number;
  /** The program and its arguments. */
  readonly argv: Argv;
}

/**
 * Looks at a call before it does anything; it may meddle with the fakes, and its fault counts before the planned ones.
 */
export type CallListener = (call: FakeCall) => Fault | undefined;

/**
 * Fault injection for all fakes that it is given to: plan a fault for the next call, the n-th one, or any that fits.
 */
export class Faults {
  readonly #timers: Timers;
  readonly #calls: FakeCall[] = [];
  readonly #next: Fault[] = [];
  readonly #planned = new Map<number, Fault>();
  readonly #listeners = new Set<CallListener>();

  constructor(timers: Timers = systemClock) {
    this.#timers = timers;
  }

  /** All calls so far. */
  get calls(): readonly FakeCall[] {
    return this.#calls;
  }

  /** The next `times` calls fail so. */
  failNext(fault: Fault = { kind: "fail" }, times = 1): void {
    for (let time = 0; time < times; time += 1) this.#next.push(fault);
  }

  /** The call with that number, counted over all calls from 1, fails so. */
  failCall(number: number, fault: Fault = { kind: "fail" }): void {
    this.#planned.set(number, fault);
  }

  /** Calls `listener` before each call until the result is called. */
  onCall(listener: CallListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Forgets what is planned, not what was called. */
  clear(): void {
    this.#next.length = 0;
    this.#planned.clear();
    this.#listeners.clear();
  }

  /**
   * To be called by a fake at the begin of each call.
   *
   * @returns what the fake has to act out itself
   * @throws CommandError for fail, and for kill before the first transaction
   */
  async enter(argv: Argv): Promise<Extract<Fault, { kind: "kill" | "lost" }> | undefined> {
    const fault = await this.begin(argv);
    if (fault?.kind === "fail") {
      const { exitCode = 1, stderr = "injected fault" } = fault;
      throw new CommandError({ argv, reason: "exit", exitCode, stderr });
    }
    if (fault?.kind === "kill" && (fault.transactions ?? 0) === 0) throw killed(argv);
    return fault;
  }

  /** The same for a fake that acts all faults out itself; delays are over. */
  async begin(argv: Argv): Promise<Exclude<Fault, { kind: "delay" }> | undefined> {
    const call = { number: this.#calls.length + 1, argv };
    this.#calls.push(call);
    let fault = this.#choose(call);
    for (; fault?.kind === "delay"; fault = fault.next) await sleep(this.#timers, fault.ms);
    return fault;
  }

  #choose(call: FakeCall): Fault | undefined {
    for (const listener of [...this.#listeners]) {
      const fault = listener(call);
      if (fault !== undefined) return fault;
    }
    return this.#planned.get(call.number) ?? this.#next.shift();
  }
}

/** How a process looks that SIGKILL ended. */
export function killed(argv: Argv): CommandError {
  return new CommandError({ argv, reason: "signal", signal: "SIGKILL" });
}

/** Does a call whose effect is one step: all of it, or with a fault as that says. */
export async function singleStep<T>(faults: Faults, argv: Argv, work: () => T): Promise<T> {
  const fault = await faults.enter(argv);
  const result = work();
  if (fault !== undefined) throw killed(argv);
  return result;
}
