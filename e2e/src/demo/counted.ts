import type { Reply } from "./stage.ts";

/** How often each end was reached, most often first, then by name. */
export function countEnds(replies: readonly Reply[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { end } of replies) counts.set(end, (counts.get(end) ?? 0) + 1);
  return new Map([...counts].sort(([a, na], [b, nb]) => nb - na || a.localeCompare(b)));
}

/** `web-a1 34 %, web-b1 33 %, web-a2 33 %` */
export function shares(replies: readonly Reply[]): string {
  return [...countEnds(replies)]
    .map(([end, count]) => `${end} ${Math.round((count / replies.length) * 100)} %`)
    .join(", ");
}

/** `20 of 20 to web-a1`, `3 to refused, 1 to silence` */
export function tally(replies: readonly Reply[]): string {
  const counts = [...countEnds(replies)];
  const [only] = counts;
  if (only !== undefined && counts.length === 1) return `${only[1]} of ${replies.length} ${only[0]}`;
  return counts.map(([end, count]) => `${count} ${end}`).join(", ");
}

export function every(replies: readonly Reply[], end: string): boolean {
  return replies.length > 0 && replies.every((reply) => reply.end === end);
}

export function senders(replies: readonly Reply[]): readonly string[] {
  return [...new Set(replies.flatMap(({ seenAs }) => (seenAs === undefined ? [] : [seenAs])))];
}
