/** Samples of a quantity over time. */

import type { FlowCounts, FlowsAnswer } from "../protocol.ts";

/** What one look at connections says; null: unknown. */
export interface Sample {
  /** Milliseconds since the epoch, by the server's clock. */
  readonly at: number;
  /** New connections a second. */
  readonly opened: number | null;
  /** In both directions. */
  readonly bytes: number | null;
  /** So far; absent: not counted. */
  readonly counts?: FlowCounts;
}

/** A look every two seconds: five minutes. */
const MOST = 150;

/** The samples with that of an answer; the oldest go. */
export function withSample(samples: readonly Sample[], { at, counts }: FlowsAnswer): readonly Sample[] {
  const last = samples.at(-1);
  if (last !== undefined && at <= last.at) return samples;
  const before = last?.counts?.began === counts?.began ? last : undefined;
  const second = (quantity: Quantity) => {
    const [from, to] = [before?.counts?.[quantity], counts?.[quantity]];
    return before === undefined || from === undefined || to === undefined
      ? null
      : ((to - from) * 1_000) / (at - before.at);
  };
  const sample = { at, opened: second("opened"), bytes: second("bytes"), ...(counts && { counts }) };
  return [...samples, sample].slice(-MOST);
}

/** Seconds since the epoch, and the values there; null leaves a gap. */
export type Points = [times: number[], values: (number | null)[]];

export type Quantity = "opened" | "bytes";

export function pointsOf(samples: readonly Sample[], quantity: Quantity): Points {
  return [samples.map(({ at }) => at / 1_000), samples.map((sample) => sample[quantity])];
}

/** In words what the curve shows; undefined: nothing yet. */
export function summaryOf(
  samples: readonly Sample[],
  quantity: Quantity,
):
  | { readonly now: number | null; readonly least: number; readonly most: number; readonly seconds: number }
  | undefined {
  const [first, last] = [samples.find((sample) => sample[quantity] !== null), samples.at(-1)];
  const values = samples.flatMap((sample) => sample[quantity] ?? []);
  if (first === undefined || last === undefined) return undefined;
  const seconds = Math.round((last.at - first.at) / 1_000);
  return { now: last[quantity], least: Math.min(...values), most: Math.max(...values), seconds };
}
