/** Milliseconds without a word. */
const PATIENCE = 1_000;

/** Where progress is told; terminals get one line that changes. */
export interface ProgressStream {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

export interface ProgressClock {
  now(): number;
  /** Calls again and again until the result is called. */
  every(milliseconds: number, tick: () => void): () => void;
}

const systemClock: ProgressClock = {
  now: () => performance.now(),
  every: (milliseconds, tick) => {
    const timer = setInterval(tick, milliseconds).unref();
    return () => clearInterval(timer);
  },
};

/** Runs work; once it has taken longer than a second, says what it is and on a terminal for how long. */
export function createProgress(stream: ProgressStream, clock: ProgressClock = systemClock) {
  return async <T>(what: string, work: () => Promise<T>): Promise<T> => {
    const began = clock.now();
    let reported = false;
    const stop = clock.every(PATIENCE, () => {
      if (stream.isTTY === true) stream.write(`\r${what} … ${Math.round((clock.now() - began) / 1000)} s`);
      else if (!reported) stream.write(`${what} …\n`);
      reported = true;
    });
    try {
      return await work();
    } finally {
      stop();
      // Erases the line: what comes next begins at its start.
      if (reported && stream.isTTY === true) stream.write("\r\u001b[K");
    }
  };
}
