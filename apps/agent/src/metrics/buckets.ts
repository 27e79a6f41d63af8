/** Upstream's buckets for durations: 1 ms, doubled up to 16.384 s. */
export const durationBuckets: readonly number[] = Array.from({ length: 15 }, (_, n) =>
  Number((0.001 * 2 ** n).toFixed(3)),
);

/** Upstream's buckets for the time from a change in the cluster to its rules: a quarter second to five minutes. */
export const programmingBuckets: readonly number[] = [
  0.25,
  0.5,
  ...range(1, 59, 1),
  ...range(60, 115, 5),
  ...range(120, 300, 30),
];

function range(from: number, to: number, step: number): number[] {
  return Array.from({ length: (to - from) / step + 1 }, (_, i) => from + i * step);
}
