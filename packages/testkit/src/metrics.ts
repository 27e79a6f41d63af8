/** What a program's /metrics has, apart from the numbers. */

export interface SeenMetric {
  /** counter, gauge, histogram */
  readonly type: string;
  /** Sorted, without `le`. */
  readonly labels: readonly string[];
  /** Upper bounds of a histogram, in the order of their lines, without +Inf. */
  readonly buckets: readonly string[];
}

/** @returns name → metric */
export function readMetrics(text: string): ReadonlyMap<string, SeenMetric> {
  const found = new Map<string, SeenMetric>();
  for (const [, name = "", type = ""] of text.matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
    const samples = text.matchAll(new RegExp(`^${name}(?:_bucket|_sum|_count)?(?:\\{(.*)\\})? \\S+$`, "gm"));
    const pairs = [...samples].flatMap(([, labels = ""]) => [...labels.matchAll(/(\w+)="([^"]*)"/g)]);
    const labels = new Set(pairs.map(([, label = ""]) => label).filter((label) => label !== "le"));
    const buckets = pairs.flatMap(([, label, value = ""]) => (label === "le" && value !== "+Inf" ? [value] : []));
    found.set(name, { type, labels: [...labels].sort(), buckets });
  }
  return found;
}
