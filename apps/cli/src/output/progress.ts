import { type Clock, systemClock } from "@fairlead/base";

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
