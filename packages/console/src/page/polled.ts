import { useEffect, useState } from "preact/hooks";
import { ask, type RequestState } from "./ask.ts";

export interface Polled<T> {
  readonly asked: RequestState<T>;
  readonly running: boolean;
  readonly setRunning: (running: boolean) => void;
}

/** Milliseconds between an answer and the next question. */
const PAUSE = 2_000;
/** Milliseconds after which it stops by itself: pages are left open, and nodes have better things to do. */
const LONGEST = 10 * 60_000;

/**
 * Asks the server again and again, while the page is in view and not for ever. Nothing looks between the questions:
 * a page that stops asking costs nothing.
 *
 * @param path another one begins anew
 */
export function usePolled<T>(path: string): Polled<T> {
  const [running, setRunning] = useState(true);
  const [asked, setAsked] = useState<{ readonly path: string; readonly is: RequestState<T> }>({
    path,
    is: { state: "asking" },
  });
  useEffect(() => {
    if (!running) return;
    const stop = new AbortController();
    const bound = setTimeout(() => setRunning(false), LONGEST);
    void follow<T>(path, stop.signal, (is) => setAsked({ path, is }));
    return () => {
      clearTimeout(bound);
      stop.abort();
    };
  }, [path, running]);
  return { asked: asked.path === path ? asked.is : { state: "asking" }, running, setRunning };
}

async function follow<T>(path: string, signal: AbortSignal, take: (is: RequestState<T>) => void): Promise<void> {
  while (!signal.aborted) {
    await inView(signal);
    const is = await ask<T>(path, undefined, signal);
    if (signal.aborted) return;
    take(is);
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
  }
}

function inView(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (!document.hidden || signal.aborted) return resolve();
    document.addEventListener("visibilitychange", () => resolve(), { once: true, signal });
    signal.addEventListener("abort", () => resolve());
  });
}
