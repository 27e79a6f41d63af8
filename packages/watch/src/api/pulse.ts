import type { Clock } from "@fairlead/base";
import type { Transport } from "./transport.ts";

/** Notices a server that keeps its connections and says nothing, as one does whose process stands still. */
export interface Pulse {
  /** Something came from the server. */
  heard(): void;
  /**
   * While a request waits for the server and nothing came, the server is asked for a sign of life.
   *
   * @param silent called when it has given none
   * @returns ends the waiting
   */
  wait(silent: () => void): () => void;
}

/**
 * Longer than a healthy API server stays silent: each watch has a bookmark once a minute. client-go sends a ping after
 * 30 s (ReadIdleTimeout), which is no request to the API server; a request of each node twice a minute would be most of
 * the requests of nodes.
 */
export const QUIET_FOR = 70_000;
/** For its answer, as client-go has it (PingTimeout). */
export const ANSWER_WITHIN = 15_000;

/** Answered without a look at etcd, and allowed to every account (system:public-info-viewer). */
const ASKED_FOR = "/version";

/**
 * HTTP/1.1 has no ping, so another request takes its place: whatever is answered, be it a refusal, is a sign of life.
 * An error in sending it says nothing of the connections that there are; TCP keepalive looks after those.
 */
export function pulse(transport: Transport, clock: Clock): Pulse {
  const waiting = new Set<() => void>();
  let heardAt = clock.monotonic();
  let cancel = () => {};

  const heard = () => {
    heardAt = clock.monotonic();
  };
  const check = () => {
    const quiet = clock.monotonic() - heardAt;
    if (quiet < QUIET_FOR) cancel = clock.after(QUIET_FOR - quiet, check);
    else cancel = ask();
  };
  const ask = () => {
    const asked = clock.monotonic();
    const stop = new AbortController();
    const answered = async () => {
      const { body } = await transport({ path: ASKED_FOR, signal: stop.signal });
      heard();
      // Read to its end, so that the connection can be used again.
      for await (const _ of body);
    };
    const cancelTimer = clock.after(ANSWER_WITHIN, () => {
      stop.abort();
      // A byte on any of the connections is a sign, too.
      if (heardAt > asked) check();
      else for (const silent of [...waiting]) silent();
    });
    const done = () => {
      if (stop.signal.aborted) return;
      cancelTimer();
      heard();
      check();
    };
    answered().then(done, done);
    return () => {
      cancelTimer();
      stop.abort();
    };
  };
  const wait = (silent: () => void) => {
    waiting.add(silent);
    if (waiting.size === 1) {
      heard();
      check();
    }
    return () => {
      if (waiting.delete(silent) && waiting.size === 0) cancel();
    };
  };
  return { heard, wait };
}
