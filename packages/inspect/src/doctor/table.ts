/** What a row of the doctor's table is, and the lines that it gives. */

import type { NodeFacts } from "./facts.ts";

export interface Line<N extends string> {
  readonly check: string;
  /** bad: services do not work; warning: they may not, or not all of them; unknown: it could not be looked at. */
  readonly state: "good" | "warning" | "bad" | "unknown";
  readonly found: string;
  /** What to do; absent where all is good. */
  readonly advice?: string;
  /** Which of all advices that is. */
  readonly adviceName?: N;
}

/** A check: its lines, and the advices that they may come with. */
export interface Row<N extends string = string> {
  readonly advices: readonly N[];
  readonly lines: (facts: NodeFacts) => readonly Line<N>[];
}

export type AdviceOf<R> = R extends Row<infer N> ? N : never;

type Words<T> = string | ((at: T) => string);

interface Met<T> {
  /** Absent: what no outcome before this one meets. */
  readonly when?: (at: T) => boolean;
  readonly found: Words<T>;
}

interface Good<T> extends Met<T> {
  readonly advice?: never;
  readonly unseen?: never;
}

/** Commands in an advice are in backticks, each whole: a reader, and the spec that follows it, takes it as it is. */
interface Advised<T> extends Met<T> {
  readonly advice: Words<T>;
  readonly unseen?: never;
}

/** For want of rights it could not be looked at: unknown, never good. */
interface Unseen<T> {
  readonly unseen: (at: T) => boolean;
  readonly when?: never;
  readonly found: Words<T>;
  /** What else helps. */
  readonly or?: string;
}

/** What a check comes to. The key is the state, its value the advice's name; without one, it is good. */
type Outcome<T, N extends string> =
  | Good<T>
  | Unseen<T>
  | (Advised<T> & { readonly bad: N })
  | (Advised<T> & { readonly warning: N })
  | (Advised<T> & { readonly unknown: N });

/** What gives the right to look. */
export const AS_ROOT = "run as root, with NET_ADMIN and in the host's network namespace";

const UNSEEN = "look-as-root";

/** A check of the whole node: the first outcome that meets is its line. */
export function line<const N extends string = never>(check: string, outcomes: readonly Outcome<NodeFacts, N>[]) {
  return lines((facts) => [facts], check, outcomes);
}

/** @param each what of the node has a line of its own; none: there is nothing to say */
export function lines<T, const N extends string = never>(
  each: (facts: NodeFacts) => readonly T[],
  check: Words<T>,
  outcomes: readonly Outcome<T, N>[],
): Row<N | typeof UNSEEN> {
  const lineFor = (at: T): readonly Line<N | typeof UNSEEN>[] => {
    const outcome = outcomes.find(({ when, unseen }) => (unseen ?? when)?.(at) ?? true);
    if (outcome === undefined) return [];
    const seen = { check: said(check, at), found: said(outcome.found, at) };
    const complaint = complaintOf(outcome);
    if (complaint === undefined) return [{ ...seen, state: "good" }];
    const { state, name, advice } = complaint;
    return [{ ...seen, state, advice: said(advice, at), adviceName: name }];
  };
  return {
    advices: outcomes.flatMap((one) => complaintOf(one)?.name ?? []),
    lines: (facts) => each(facts).flatMap(lineFor),
  };
}

/** How many a line names; the others are counted. */
const MOST_NAMED = 5;

export function listed(all: readonly string[], separator = ", ", most = MOST_NAMED): string {
  const more = all.length > most ? [`and ${all.length - most} more`] : [];
  return [...all.slice(0, most), ...more].join(separator);
}

const LONGEST_NAME = 60;

/** Names that anyone may have given, cut where they are long. */
export function named(names: readonly string[]): string {
  return listed(names.map((name) => (name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME - 1)}…` : name)));
}

function complaintOf<T, N extends string>(outcome: Outcome<T, N>) {
  if (outcome.unseen !== undefined) {
    const advice = outcome.or === undefined ? AS_ROOT : `${AS_ROOT}; ${outcome.or}`;
    return { state: "unknown", name: UNSEEN, advice } as const;
  }
  const { advice } = outcome;
  if (advice === undefined) return undefined;
  if ("bad" in outcome) return { state: "bad", name: outcome.bad, advice } as const;
  if ("warning" in outcome) return { state: "warning", name: outcome.warning, advice } as const;
  return { state: "unknown", name: outcome.unknown, advice } as const;
}

function said<T>(words: Words<T>, at: T): string {
  return typeof words === "function" ? words(at) : words;
}
