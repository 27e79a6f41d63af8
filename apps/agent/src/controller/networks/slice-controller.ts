import { type Clock, objectAt, textAt } from "@fairlead/base";
import { Reconciler } from "../reconciler.ts";
import { type Key, namespacedName, type SliceWriter } from "../requests.ts";
import type { SliceProblem } from "./decode.ts";
import { type OwnSlice, sliceObjectOf } from "./slice.ts";
import type { ServicePlan, SliceState } from "./slice-state.ts";

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

/** Carries out what the state plans, one Service after the other; a Service that fails does not hold up the others. */
export class SliceController {
  readonly #options: ControllerOptions;
  readonly #loop: Reconciler<Key>;
  readonly #said = new Map<Key, string>();

  constructor(options: ControllerOptions) {
    this.#options = options;
    const { state, clock, mayWrite, onError } = options;
    this.#loop = new Reconciler({
      dirty: state.dirty,
      again: (key) => state.again(key),
      reconcile: (key, may) => this.#reconcile(key, may),
      clock,
      mayWrite,
      onError,
    });
  }

  changed(): void {
    this.#loop.changed();
  }

  /** Until the signal aborts, or this process may no longer write. The first complete lists have to be in the state. */
  run(signal: AbortSignal): Promise<void> {
    return this.#loop.run(signal);
  }

  async #reconcile(key: Key, mayWrite: () => boolean): Promise<void> {
    const { state, most } = this.#options;
    const plan = state.plan(key, most);
    this.#report(key, plan.problems);
    for (const write of this.#writes(plan)) {
      // The right to write may come back, before anything else makes it dirty.
      if (!mayWrite()) return state.again(key);
      await write();
    }
  }

  /** What comes is written before what goes: a Service does not lose its endpoints in between. */
  #writes({ service, create, update, remove }: ServicePlan): readonly (() => Promise<void>)[] {
    const { writer, state } = this.#options;
    const made = service === undefined ? [] : create.map((content) => sliceObjectOf(service, content));
    const renewed =
      service === undefined
        ? []
        : update.map(({ over, content }) => ({ over, object: sliceObjectOf(service, content, over) }));
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
