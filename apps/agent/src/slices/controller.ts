import { type Clock, objectAt, sleep, textAt } from "@fairlead/base";
import { type Key, namespacedName, type SliceProblem } from "./decode.ts";
import { type OwnSlice, type SliceObject, sliceObject } from "./slice.ts";
import type { ServicePlan, SliceState } from "./slice-state.ts";

/** Writes to the API server. Each throws an Error where the server refuses or gives no answer. */
export interface SliceWriter {
  /** @returns the object as the server has it */
  create(object: SliceObject): Promise<unknown>;
  /**
   * Refused where another client wrote since the version in the object.
   *
   * @returns the object as the server has it; undefined: there is none any longer
   */
  update(object: SliceObject): Promise<unknown>;
  /** One that is gone already is no error. */
  remove(slice: OwnSlice): Promise<void>;
}

export interface ControllerOptions {
  readonly state: SliceState;
  readonly writer: SliceWriter;
  readonly clock: Clock;
  /** Endpoints of a slice, 1 to 1,000. */
  readonly most: number;
  /** Asked before each write: whether this process still leads. */
  readonly mayWrite: () => boolean;
  /** What is wrong with a Service, when that is other than before; none: all is well again. */
  readonly onProblems: (key: Key, problems: readonly SliceProblem[]) => void;
  readonly onError: (key: Key, error: unknown, retryMs: number) => void;
}

/** Milliseconds in which changes gather: a rolling update of a Service is few writes, and an endpoint is not late. */
const GATHER = 100;
/** Milliseconds until a Service whose write failed is tried again: doubled each time. */
const [FIRST_RETRY, LONGEST_RETRY] = [500, 60_000] as const;

/** Carries out what the state plans, one Service after the other; a Service that fails does not hold up the others. */
export class SliceController {
  readonly #options: ControllerOptions;
  readonly #said = new Map<Key, string>();
  /** Failures in a row. */
  readonly #failures = new Map<Key, number>();
  /** Services that wait for their next try. */
  readonly #waiting = new Set<Key>();
  #wake: () => void = () => {};

  constructor(options: ControllerOptions) {
    this.#options = options;
  }

  /** To be called when objects have changed. */
  changed(): void {
    this.#wake();
  }

  /** Until the signal aborts, or this process may no longer write. The first complete lists have to be in the state. */
  async run(signal: AbortSignal): Promise<void> {
    const { state, clock, mayWrite } = this.#options;
    while (!signal.aborted && mayWrite()) {
      const due = [...state.dirty].filter((key) => !this.#waiting.has(key));
      if (due.length === 0) await this.#idle(signal);
      else await sleep(clock, GATHER, signal);
      for (const key of due) if (!signal.aborted) await this.#reconcile(key, signal);
    }
  }

  #idle(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        signal.removeEventListener("abort", end);
        resolve();
      };
      this.#wake = end;
      signal.addEventListener("abort", end);
    });
  }

  async #reconcile(key: Key, signal: AbortSignal): Promise<void> {
    const { state, most } = this.#options;
    const plan = state.plan(key, most);
    this.#report(key, plan.problems);
    try {
      for (const write of this.#writes(plan)) {
        // The right to write may come back, before anything else makes it dirty.
        if (signal.aborted || !this.#options.mayWrite()) return state.again(key);
        await write();
      }
      this.#failures.delete(key);
    } catch (error) {
      this.#retry(key, error, signal);
    }
  }

  /** What comes is written before what goes: a Service does not lose its endpoints in between. */
  #writes({ service, create, update, remove }: ServicePlan): readonly (() => Promise<void>)[] {
    const { writer, state } = this.#options;
    const made = service === undefined ? [] : create.map((content) => sliceObject(service, content));
    const renewed =
      service === undefined
        ? []
        : update.map(({ over, content }) => ({ over, object: sliceObject(service, content, over) }));
    // The watch brings what was written as well, later: until then the next plan must not write it again.
    const wrote = ({ namespace, name, resourceVersion }: OwnSlice, stored?: unknown) =>
      state.wroteSlice(namespacedName(namespace, name), resourceVersion, stored);
    return [
      ...made.map((object) => async () => {
        const stored = await writer.create(object);
        const key = keyOf(stored);
        if (key !== undefined) state.wroteSlice(key, undefined, stored);
      }),
      ...renewed.map(
        ({ over, object }) =>
          async () =>
            wrote(over, await writer.update(object)),
      ),
      ...remove.map((slice) => async () => {
        await writer.remove(slice);
        wrote(slice);
      }),
    ];
  }

  #retry(key: Key, error: unknown, signal: AbortSignal): void {
    const { clock, state, onError } = this.#options;
    const before = this.#failures.get(key) ?? 0;
    const delay = Math.min(LONGEST_RETRY, FIRST_RETRY * 2 ** before);
    this.#failures.set(key, before + 1);
    this.#waiting.add(key);
    onError(key, error, delay);
    clock.after(delay, () => {
      if (signal.aborted) return;
      this.#waiting.delete(key);
      state.again(key);
      this.#wake();
    });
  }

  #report(key: Key, problems: readonly SliceProblem[]): void {
    const text = JSON.stringify(problems);
    if ((this.#said.get(key) ?? "[]") === text) return;
    if (problems.length === 0) this.#said.delete(key);
    else this.#said.set(key, text);
    this.#options.onProblems(key, problems);
  }
}

function keyOf(raw: unknown): Key | undefined {
  const metadata = objectAt(raw, "metadata");
  const [namespace, name] = [textAt(metadata, "namespace"), textAt(metadata, "name")];
  return namespace === undefined || name === undefined ? undefined : namespacedName(namespace, name);
}
