/** Durations as Go writes and reads them (time.ParseDuration): `1h0m0s`, `1.5s`, `300ms`, `0`. */

const MILLISECONDS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3, // U+00B5, micro sign
  μs: 1e-3, // U+03BC, Greek mu
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
};

const WHOLE = /^([-+]?)((?:(?:\d+\.?\d*|\.\d+)(?:ns|us|\u00b5s|\u03bcs|ms|s|m|h))+)$/;
const PART = /(\d+\.?\d*|\.\d+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)/g;

/** Go counts nanoseconds in 63 bits: 292 years. */
const LONGEST_MS = 2 ** 63 / 1e6;

/** @returns milliseconds, or undefined when `text` is no Go duration */
export function parseDuration(text: string): number | undefined {
  if (/^[-+]?0$/.test(text)) return 0;
  const [, sign, parts] = WHOLE.exec(text) ?? [];
  if (parts === undefined) return undefined;
  let total = 0;
  for (const [, amount, unit] of parts.matchAll(PART)) total += Number(amount) * (MILLISECONDS[unit ?? ""] ?? 0);
  if (total >= LONGEST_MS) return undefined;
  return sign === "-" && total !== 0 ? -total : total;
}

/** The text that Go's Duration.String gives: `1h0m0s`, `30s`, `1.5ms`, `0s`. */
export function formatDuration(ms: number): string {
  if (ms === 0) return "0s";
  if (ms < 0) return `-${formatDuration(-ms)}`;
  if (ms < 1e-3) return `${Math.round(ms * 1e6)}ns`;
  if (ms < 1) return `${trimmed(ms * 1e3)}µs`;
  if (ms < 1_000) return `${trimmed(ms)}ms`;
  const hours = Math.floor(ms / 3_600_000);
  const minutes = Math.floor((ms % 3_600_000) / 60_000);
  const seconds = `${trimmed((ms % 60_000) / 1_000)}s`;
  if (hours > 0) return `${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${minutes}m${seconds}` : seconds;
}

function trimmed(value: number): string {
  return String(Number(value.toFixed(9)));
}
