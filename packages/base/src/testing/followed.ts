/** One way for tests to follow a stream until something holds. */

import { errorText } from "../errors.ts";
import { systemClock } from "../time.ts";
import { settled, type VirtualClock } from "./virtual-clock.ts";

/**
 * Waits of tests: for what a stream brings bit by bit (events, states, lines of a log), and for what has to be looked
 * at. They end with the test and not by a clock: `signal` is the test's own, `({ signal })` of vitest. An error says
 * what never held, and what was seen last.
 */

/** What a condition gives while it does not hold yet. */
export type NotYet = undefined | false;

const GIVEN_UP = "the test was given up";

/** How many of the last items an error shows, and how many characters of each. */
const SHOWN = { items: 5, characters: 1_000 };

/** What came until now, and the waits for more. */
export class Followed<Item> {
  readonly #seen: Item[] = [];
  readonly #waiting = new Set<() => void>();
  #over: { readonly why: string; readonly cause?: unknown } | undefined;

  /** @param signal the test's: when it aborts, each waiter gets an error */
  constructor(signal: AbortSignal) {
    signal.addEventListener("abort", () => this.#end({ why: GIVEN_UP, cause: signal.reason }), { once: true });
  }

  /** All that came, in order. */
  get seen(): readonly Item[] {
    return this.#seen;
  }

  /** Something has come. */
  add(item: Item): void {
    this.#seen.push(item);
    this.#wake();
  }

  /**
   * Nothing more comes.
   *
   * @param cause why, where that is an error
   */
  end(cause?: unknown): void {
    this.#end(
      cause === undefined ? { why: "the stream ended" } : { why: `the stream failed: ${errorText(cause)}`, cause },
    );
  }

  /**
   * Resolves with what `found` gives of all that came, as soon as it gives something: it is asked at once, and after
   * each item.
   *
   * @param what is waited for; default: the text of `found`
   * @throws Error that says what never came, and what came last, where the stream or the test has ended
   */
  until<T>(found: (seen: readonly Item[]) => T | NotYet, what = String(found)): Promise<T> {
    return new Promise((resolve, reject) => {
      const look = () => {
        try {
          const value = found(this.#seen);
          if (value !== undefined && value !== false) resolve(value);
          else if (this.#over !== undefined) throw this.#error(what, this.#over);
          else return;
        } catch (error) {
          reject(error);
        }
        this.#waiting.delete(look);
      };
      this.#waiting.add(look);
      look();
    });
  }

  #end(over: { readonly why: string; readonly cause?: unknown }): void {
    this.#over ??= over;
    this.#wake();
  }

  #wake(): void {
    for (const look of this.#waiting) look();
  }

  #error(what: string, { why, cause }: { readonly why: string; readonly cause?: unknown }): Error {
    const last = this.#seen.slice(-SHOWN.items).map(shown);
    const said = last.length === 0 ? "nothing came" : `last of ${this.#seen.length}:\n${last.join("\n")}`;
    const message = `this never held: ${what}\n${said}`;
    if (why === GIVEN_UP) addToReason(cause, message);
    return new Error(`${why}, and ${message}`, { cause });
  }
}

/** A stream that is followed in the background until it is stopped, or goes out of scope. */
export interface FollowedStream<Item> extends Followed<Item>, AsyncDisposable {
  /**
   * Ends the stream.
   *
   * @throws what the stream has thrown before
   */
  stop(): Promise<void>;
  /** Ends the stream; what it throws is of no interest any more. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Follows a stream in the background. A stream that fails also fails those waits that need more of it, and only those.
 *
 * @param signal the test's
 * @param open the stream, which ends when its signal aborts
 */
export function follow<Item>(
  signal: AbortSignal,
  open: (stop: AbortSignal) => AsyncIterable<Item>,
): FollowedStream<Item> {
  const stopped = new AbortController();
  const followed = new Followed<Item>(signal);
  let failed: { readonly error: unknown } | undefined;
  const ended = (async () => {
    try {
      for await (const item of open(AbortSignal.any([signal, stopped.signal]))) followed.add(item);
      followed.end();
    } catch (error) {
      if (!stopped.signal.aborted) failed = { error };
      followed.end(error);
    }
  })();
  const stop = () => {
    stopped.abort();
    return ended;
  };
  return Object.assign(followed, {
    [Symbol.asyncDispose]: stop,
    async stop() {
      await stop();
      if (failed !== undefined) throw failed.error;
    },
  });
}

/** Milliseconds between two looks. */
const PAUSE_MS = 2;

/**
 * Looks again and again until `found` gives something, for what says nothing by itself.
 *
 * @param signal the test's
 * @param clock goes on by a tenth of a second before each new look; default: real time passes
 * @throws Error that says what never held, where the test has ended
 */
export async function until<T>(
  signal: AbortSignal,
  found: () => T | NotYet | Promise<T | NotYet>,
  clock?: VirtualClock,
): Promise<T> {
  const message = `this never held: ${found}`;
  const giveUp = () => addToReason(signal.reason, message);
  signal.addEventListener("abort", giveUp, { once: true });
  try {
    for (;;) {
      const value = await found();
      if (value !== undefined && value !== false) return value;
      if (signal.aborted) throw new Error(`${GIVEN_UP}, and ${message}`);
      if (clock === undefined) await new Promise<void>((resolve) => systemClock.after(PAUSE_MS, resolve));
      else {
        await clock.advance(100);
        await settled();
      }
    }
  } finally {
    signal.removeEventListener("abort", giveUp);
  }
}

/**
 * Milliseconds, real ones, that a test waits for what comes at once on a quiet machine: the end of a hang. Below the
 * limit of the tests themselves, so that a failure says what never came.
 */
export const PATIENCE_MS = 300_000;

/**
 * Vitest reports the error with which it aborts a test, and not what the test throws then: what was waited for has to
 * be in that one.
 */
function addToReason(reason: unknown, message: string): void {
  if (!(reason instanceof Error) || Object.getOwnPropertyDescriptor(reason, "message")?.writable !== true) return;
  const [before, { stack }] = [reason.message, reason];
  reason.message = `${before}\n${message}`;
  // Its first lines are the message.
  if (stack !== undefined) reason.stack = stack.replace(before, () => reason.message);
}

function shown(item: unknown): string {
  const text = typeof item === "string" ? item : (JSON.stringify(item) ?? String(item));
  return text.length <= SHOWN.characters ? text : `${text.slice(0, SHOWN.characters)} …`;
}
