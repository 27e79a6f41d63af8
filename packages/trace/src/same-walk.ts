import type { PacketEnd, Walk } from "./walk.ts";

/** What ways of one rule differ in, as a rule: those of equal keys are to be compared. */
export function walkKey({ destination, source, mark }: Walk): string {
  return `${sideText(destination)} ${sideText(source)} ${mark}`;
}

/** Whether all but the chances of two ways is equal. */
export function isSameWalk(one: Walk, other: Walk): boolean {
  // The keys of a walk are its own.
  const keys = Object.keys(one) as (keyof Walk)[];
  return keys.every((key) => key === "probability" || isSame(one, other, key));
}

function isSame(one: Walk, other: Walk, key: keyof Walk): boolean {
  if (key === "destination" || key === "source") return sideText(one[key]) === sideText(other[key]);
  return one[key] === other[key];
}

function sideText({ address, port }: PacketEnd): string {
  return `${address} ${port ?? ""}`;
}

/** Made anew by each walk, and compared by what they say. */
const DATA: ReadonlySet<keyof Walk> = new Set(["routed", "said", "seen", "remembered"]);

/** Whether two ways of one key are equal, but for what does not matter for the way on. */
export function goesOnAlike(one: Walk, other: Walk, any: ReadonlySet<keyof Walk>): boolean {
  const keys = Object.keys(one) as (keyof Walk)[];
  return keys.every(
    (key) => any.has(key) || one[key] === other[key] || (DATA.has(key) && isEqual(one[key], other[key])),
  );
}

function isEqual(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
