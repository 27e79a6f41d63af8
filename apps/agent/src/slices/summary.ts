import type { ProblemReason, SliceProblem } from "./service.ts";

/** Pods that are named in one message. */
const NAMED = 3;

/** One problem for each reason, so that a thousand pods without a status are one Event. */
export function summarized(problems: readonly SliceProblem[]): readonly SliceProblem[] {
  const byReason = new Map<ProblemReason, SliceProblem[]>();
  for (const problem of problems) {
    const alike = byReason.get(problem.reason) ?? [];
    byReason.set(problem.reason, alike);
    alike.push(problem);
  }
  return Array.from(byReason.values(), summary);
}

function summary(alike: readonly SliceProblem[]): SliceProblem {
  // In the order of names: the same pods are the same message, whatever order they came in.
  const [first, ...others] = [...alike].sort((one, other) => ((one.pod ?? "") < (other.pod ?? "") ? -1 : 1));
  if (first === undefined) throw new RangeError("a reason without a problem");
  const { reason, pod, message } = first;
  if (pod === undefined) return first;
  if (others.length === 0) return { reason, pod, message: `pod ${pod} is left out: it ${message}` };
  const named = others.slice(0, NAMED - 1).map((other) => other.pod);
  const more = others.length > named.length ? `, and ${others.length - named.length} more` : "";
  return { reason, pod, message: `pods ${[pod, ...named].join(", ")}${more} are left out: ${pod} ${message}` };
}
