/** The process and its terminal: how it ends, what it reports while it works, colors. */

import { styleText } from "node:util";
import { type Clock, systemClock } from "@fairlead/base";

/** Exit codes of a process that a signal ended: 128 and the signal's number, as shells report it. */
const SIGNALS = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;

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
    // A reader that has seen enough (head, less) is not a failure; a terminal that is gone (EIO) comes with SIGHUP.
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

/** Milliseconds until the first report, and between two. */
const PATIENCE = 1_000;

/** Where progress is reported; terminals get one line that changes. */
export interface ProgressStream {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

/** Runs work; once it has taken longer than a second, says what it is and on a terminal for how long. */
export function createProgress(stream: ProgressStream, clock: Pick<Clock, "monotonic" | "after"> = systemClock) {
  return async <T>(what: string, work: () => Promise<T>): Promise<T> => {
    const began = clock.monotonic();
    let reported = false;
    const report = () => {
      if (stream.isTTY === true) stream.write(`\r${what} … ${Math.round((clock.monotonic() - began) / 1000)} s`);
      else if (!reported) stream.write(`${what} …\n`);
      reported = true;
      stop = clock.after(PATIENCE, report);
    };
    let stop = clock.after(PATIENCE, report);
    try {
      return await work();
    } finally {
      stop();
      // Erases the line: what comes next begins at its start.
      if (reported && stream.isTTY === true) stream.write("\r\u001b[K");
    }
  };
}

/** How single words are set off, where that is wanted at all. */
export interface Style {
  readonly bold: (text: string) => string;
  readonly dim: (text: string) => string;
  readonly good: (text: string) => string;
  readonly bad: (text: string) => string;
  readonly warn: (text: string) => string;
}

const asIs = (text: string): string => text;
export const plain: Style = { bold: asIs, dim: asIs, good: asIs, bad: asIs, warn: asIs };

const colored: Style = {
  bold: paint("bold"),
  dim: paint("dim"),
  good: paint("green"),
  bad: paint("red"),
  warn: paint("yellow"),
};

/** Colors for terminals only, and not with NO_COLOR (https://no-color.org) or a terminal without colors. */
export function styleFor(isTerminal: boolean, env: Readonly<Record<string, string | undefined>>): Style {
  const { NO_COLOR: refused = "", TERM: terminal } = env;
  return isTerminal && refused === "" && terminal !== "dumb" ? colored : plain;
}

function paint(format: Parameters<typeof styleText>[0]) {
  return (text: string) => styleText(format, text, { validateStream: false });
}
