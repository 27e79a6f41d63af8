/** Conditions of statuses: ours take the place of what is there, and those of others stay. */

import { numberOf, objectsAt, type RawObject, textAt } from "@fairlead/base";

/** What a condition says; its time and generation come when it is written. */
export interface Finding {
  readonly type: "Accepted" | "Conflicted" | "Programmed" | "ResolvedRefs";
  readonly status: boolean;
  /** Of the API's own list where it has one that fits. */
  readonly reason: string;
  readonly message: string;
}

export function yes(type: Finding["type"], message: string): Finding {
  return { type, status: true, reason: type, message };
}

export function no(type: Finding["type"], reason: string, message: string): Finding {
  return { type, status: false, reason, message };
}

/** When a status is written, and of which state of the object it speaks. */
export interface Moment {
  readonly generation: number;
  /** RFC 3339, in seconds. */
  readonly now: string;
}

/** Bytes of a message that the API takes. */
const LONGEST = 32_768;

/**
 * The conditions of an object or a part of it, with these findings: each in the place of the one of its type, or at the
 * end. What was found of a later generation, by a process that knows more, stays.
 *
 * @param holder has the conditions that are there
 * @param dropped types of ours that no longer hold
 */
export function conditionsWith(
  holder: unknown,
  findings: readonly Finding[],
  { generation, now }: Moment,
  dropped: readonly Finding["type"][] = [],
): readonly RawObject[] {
  const before = objectsAt(holder, "conditions").filter(({ type }) => !dropped.some((one) => one === type));
  const left = new Map<unknown, Finding>(findings.map((finding) => [finding.type, finding]));
  const written = (finding: Finding, old?: RawObject): RawObject => {
    const status = finding.status ? "True" : "False";
    const since = old?.["status"] === status ? textAt(old, "lastTransitionTime") : undefined;
    const { type, reason, message } = finding;
    const lastTransitionTime = since ?? now;
    return {
      type,
      status,
      observedGeneration: generation,
      lastTransitionTime,
      reason,
      message: message.slice(0, LONGEST),
    };
  };
  const merged = before.map((old) => {
    const finding = left.get(old["type"]);
    left.delete(old["type"]);
    const isLater = (numberOf(old["observedGeneration"]) ?? 0) > generation;
    return finding === undefined || isLater ? old : written(finding, old);
  });
  return [...merged, ...Array.from(left.values(), (finding) => written(finding))];
}

/** What is wrong by these conditions and was not by the ones before: worth an Event. */
export function newProblems(before: unknown, after: unknown): readonly { reason: string; message: string }[] {
  const text = ({ type, status, reason, message }: RawObject) => JSON.stringify([type, status, reason, message]);
  const known = new Set(objectsAt(before, "conditions").map(text));
  return objectsAt(after, "conditions").flatMap((condition) => {
    const [reason, message] = [textAt(condition, "reason"), textAt(condition, "message")];
    const isBad = condition["status"] === "False" && !WAITING.has(reason);
    return isBad && reason !== undefined && message !== undefined && !known.has(text(condition))
      ? [{ reason, message }]
      : [];
  });
}

/** What a load balancer has not done yet ends by itself, or is an Event of its own. */
const WAITING: ReadonlySet<string | undefined> = new Set(["Pending", "AddressNotAssigned", "AddressNotUsable"]);
