/** Collects what is wrong, and words it. */

import { distance } from "fastest-levenshtein";
import { valueAt } from "./paths.ts";
import type { ConfigError } from "./types.ts";

/** Names where a field's value came from: `--oom-score-adj`, `config.conf: oomScoreAdj`. */
export type FieldNames = (path: string) => string;

/** Collects what is wrong, all of it, and what is merely worth a line. */
export interface Report {
  readonly errors: readonly ConfigError[];
  readonly warnings: readonly string[];
  /** @param value the wrong part, where the value as it was given would say too much */
  error(path: string, message: string, value?: string): void;
  warn(text: string): void;
  name(path: string): string;
  /** The value as it was given, "" where it was not. */
  given(path: string): string;
}

/** @param raw what was given, to show a wrong value as it was written */
export function createReport(raw: unknown, name: FieldNames): Report {
  const errors = new Map<string, ConfigError>();
  const warnings = new Set<string>();
  return {
    get errors() {
      return [...errors.values()];
    },
    get warnings() {
      return [...warnings];
    },
    given: (path) => showValue(valueAt(raw, path)),
    error(path, message, value = showValue(valueAt(raw, path))) {
      const error = { field: name(path), value, message };
      // One flag may set several fields: what is wrong with it is said once.
      errors.set(JSON.stringify(error), error);
    },
    warn: (text) => void warnings.add(text),
    name,
  };
}

/** A value as an operator would write it, cut to a line. */
export function showValue(value: unknown): string {
  if (value === undefined) return "";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > 120 ? `${text.slice(0, 117)}...` : text;
}

/** `--oom-score-adj=2000: must be …`, the line for the operator. */
export function formatError({ field, value, message }: ConfigError): string {
  const separator = field.startsWith("--") ? "=" : ": ";
  const printable = value.replace(/\p{Cc}/gu, (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return `${field}${value === "" ? "" : `${separator}${printable}`}: ${message}`;
}

/** The word nearest to `word`, where a slip of one or two letters (or of case) would explain it. */
export function closest(word: string, words: readonly string[]): string | undefined {
  const same = words.find((candidate) => candidate.toLowerCase() === word.toLowerCase());
  if (same !== undefined) return same;
  const allowed = word.length < 5 ? 1 : 2;
  const ranked = words
    .map((candidate) => ({ candidate, distance: distance(word, candidate) }))
    .filter((entry) => entry.distance <= allowed)
    .sort((a, b) => a.distance - b.distance);
  return ranked[0]?.candidate;
}
