import type { ProgrammingMetric } from "./figures.ts";

const NAME = "kubeproxy_network_programming_duration_seconds";
const SAMPLE = new RegExp(String.raw`^${NAME}_(bucket|sum|count)\{([^}]*)\} (\S+)\r?$`, "gm");

/** The IPv4 histogram as it stands. */
export interface Histogram {
  /** Upper bound → how many are not above it. */
  readonly buckets: ReadonlyMap<number, number>;
  readonly sum: number;
  readonly count: number;
}

/** @param metrics of a proxy's `/metrics`; both proxies have the same name, label and buckets */
export function programmingHistogram(metrics: string): Histogram {
  const buckets = new Map<number, number>();
  const totals = { sum: 0, count: 0 };
  for (const [, part = "", labels = "", value = ""] of metrics.matchAll(SAMPLE)) {
    if (!labels.includes('ip_family="IPv4"')) continue;
    const bound = /le="([^"]+)"/.exec(labels)?.[1];
    if (part === "sum" || part === "count") totals[part] = Number(value);
    else if (bound !== undefined)
      buckets.set(bound === "+Inf" ? Number.POSITIVE_INFINITY : Number(bound), Number(value));
  }
  return { buckets, ...totals };
}

/** What was observed between two looks. @throws Error when that is nothing */
export function programmingBetween(before: Histogram, after: Histogram): ProgrammingMetric {
  const count = after.count - before.count;
  if (count === 0) throw new Error(`the proxy's ${NAME} has observed nothing`);
  const bounds = [...after.buckets.keys()].sort((a, b) => a - b);
  const reached = (bound: number) => (after.buckets.get(bound) ?? 0) - (before.buckets.get(bound) ?? 0);
  const p99Bucket = bounds.find((bound) => reached(bound) >= 0.99 * count) ?? Number.POSITIVE_INFINITY;
  return { count, meanMs: ((after.sum - before.sum) / count) * 1000, p99Bucket };
}
