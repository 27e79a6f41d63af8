/** Exit codes of a process that a signal ended: 128 and the signal's number, as shells tell it. */
const SIGNALS = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;

/** What of a process is asked here. */
export interface EndingProcess {
  readonly stdout: { on(event: "error", listener: (error: NodeJS.ErrnoException) => void): unknown };
  readonly stderr: { on(event: "error", listener: () => void): unknown };
  on(signal: keyof typeof SIGNALS, listener: () => void): unknown;
  exit(code: number): void;
}

/**
 * Ends the process at a signal, or when nothing reads what it prints anymore: at once, or as soon as the work is done
 * that ends by itself then and takes away what it has put into the kernel.
 */
export class Ending {
  readonly #stop = new AbortController();
  readonly #process: EndingProcess;
  #working = 0;
  #unwritten: number | undefined;

  constructor(process: EndingProcess) {
    this.#process = process;
    // Every time, not once: where no other listener is left, execa's ends the process in the middle of the work.
    for (const [signal, code] of SIGNAL_CODES) process.on(signal, () => this.#end(code));
    // A reader that has seen enough (head, less) is no failure; a terminal that is gone (EIO) comes with SIGHUP.
    process.stdout.on("error", ({ code }) => {
      this.#unwritten ??= code === "EPIPE" ? 0 : 3;
      this.#end(this.#unwritten);
    });
    process.stderr.on("error", () => {});
  }

  /** Aborts when the process is to end. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** Waits for work that ends by itself when `signal` aborts. */
  readonly untilStopped = async <T>(work: () => Promise<T>): Promise<T> => {
    this.#working += 1;
    try {
      return await work();
    } finally {
      this.#working -= 1;
    }
  };

  /** The exit code of a process whose command ended with this one. */
  codeOf(code: number): number {
    return this.#unwritten ?? code;
  }

  #end(code: number): void {
    this.#stop.abort();
    if (this.#working === 0) this.#process.exit(code);
  }
}

const SIGNAL_CODES = [
  ["SIGHUP", SIGNALS.SIGHUP],
  ["SIGINT", SIGNALS.SIGINT],
  ["SIGTERM", SIGNALS.SIGTERM],
] as const;
