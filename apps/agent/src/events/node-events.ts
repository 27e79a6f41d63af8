import type { Clock } from "../clock.ts";
import { describeError, type Log } from "../log/log.ts";
import { eventObject, type NodeEvent } from "./node-event.ts";

export interface NodeEventsParts {
  readonly node: string;
  /** Creates the object and gives the server's status. */
  readonly post: (event: unknown) => Promise<number>;
  readonly clock: Pick<Clock, "now" | "monotonic">;
  readonly log: Log;
}

/** Milliseconds before an event of the same reason is sent again: the API server keeps them for an hour. */
const pause = 600_000;

/**
 * Tells Events about the own Node. They are a courtesy: what cannot be sent is dropped, and after the server said that the
 * role does not allow it nothing is sent any more.
 */
export class NodeEvents {
  readonly #parts: NodeEventsParts;
  readonly #notBefore = new Map<string, number>();
  #allowed = true;

  constructor(parts: NodeEventsParts) {
    this.#parts = parts;
  }

  async tell(event: NodeEvent): Promise<void> {
    const { node, post, clock, log } = this.#parts;
    const now = clock.monotonic();
    if (!this.#allowed || now < (this.#notBefore.get(event.reason) ?? 0)) return;
    this.#notBefore.set(event.reason, now + pause);
    const id = Math.trunc(clock.now() * 1e6).toString(16);
    try {
      const status = await post(eventObject(event, node, clock.now(), id));
      if (status === 201) return;
      if (status === 403) this.#forbidden();
      else log.verbose(2, "An Event was not taken", { reason: event.reason, status });
    } catch (error) {
      log.verbose(2, "An Event could not be sent", { reason: event.reason, error: describeError(error) });
    }
  }

  #forbidden(): void {
    if (this.#allowed)
      this.#parts.log.info("Events about the Node are not sent: the role does not allow to create them");
    this.#allowed = false;
  }
}
