const UNITS: readonly (readonly [unit: string, milliseconds: number])[] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
  ["ms", 1],
];

/** Milliseconds as nft writes them: `3h`, `1m30s`. */
export function durationText(milliseconds: number): string {
  let rest = milliseconds;
  const parts = UNITS.map(([unit, size]) => {
    const count = Math.floor(rest / size);
    rest -= count * size;
    return count === 0 ? "" : `${count}${unit}`;
  });
  return parts.join("") || "0s";
}

/** @returns milliseconds; undefined: it is not a duration */
export function durationOf(text: string): number | undefined {
  if (!/^(\d+(ms|[dhms]))+$/.test(text)) return undefined;
  const parts = text.matchAll(/(\d+)(ms|[dhms])/g);
  return Array.from(parts, ([, count, unit]) => Number(count) * sizeOf(unit)).reduce((sum, part) => sum + part, 0);
}

function sizeOf(unit: string | undefined): number {
  return UNITS.find(([name]) => name === unit)?.[1] ?? 0;
}
