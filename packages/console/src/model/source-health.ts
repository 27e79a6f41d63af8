import { nextTurn } from "@fairlead/base";
import type { SourceReport } from "@fairlead/watch";
import type { SourceAnswer } from "../protocol/index.ts";

/** Whether the source of the objects answers, from what it reports. */
export class SourceHealth {
  readonly #now: () => number;
  #answer: SourceAnswer = {};
  #changed = Promise.withResolvers<void>();
  /** Called after each change. */
  onChange: () => void = () => {};

  /** @param now milliseconds since the epoch */
  constructor(now: () => number = () => Date.now()) {
    this.#now = now;
  }

  now(): SourceAnswer {
    return this.#answer;
  }

  take(report: SourceReport): void {
    const { failing: before, ...others } = this.#answer;
    if (report.type === "recovered" && before !== undefined) this.#set(others);
    if (report.type !== "failing") return;
    const { problem, server, error, resources, milliseconds } = report;
    const since = this.#now() - milliseconds;
    this.#set({ ...others, failing: { problem, server, error, resources, since } });
  }

  /** Whether Nodes may be listed. */
  setNodesForbidden(are: boolean): void {
    const { nodesForbidden: before = false, ...others } = this.#answer;
    if (are !== before) this.#set({ ...others, ...(are && { nodesForbidden: true }) });
  }

  /** What is known now, and again after each change, until the promise resolves. */
  async *until(end: Promise<unknown>): AsyncGenerator<SourceAnswer, void, void> {
    let isOver = false;
    const ended = end.then(() => {
      isOver = true;
    });
    await nextTurn();
    while (!isOver) {
      const changed = this.#changed.promise;
      yield this.#answer;
      await Promise.race([ended, changed]);
    }
  }

  #set(answer: SourceAnswer): void {
    this.#answer = answer;
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
    this.onChange();
  }
}
