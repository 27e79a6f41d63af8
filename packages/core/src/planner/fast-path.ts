import type { ServicePortGroup } from "../plan.ts";

/**
 * Annotation of a Service: "off" keeps its connections off the fast path, so that all their packets meet all rules.
 * "on" is as without it. Any other value means "off", which is the safe side of a mistake.
 */
const FAST_PATH_ANNOTATION = "fairlead.dev/fast-path";

const VALUES: readonly string[] = ["on", "off"];

type Annotations = Readonly<Record<string, string>>;

/** What the groups of a service have; undefined: they may be on the fast path. */
export function fastPathOf({ [FAST_PATH_ANNOTATION]: value = "on" }: Annotations): ServicePortGroup["fastPath"] {
  return value === "on" ? undefined : "off";
}

/** What is wrong with the annotation, for its service's owner. */
export function fastPathProblem(annotations: Annotations): { value: string; reason: string } | undefined {
  const value = annotations[FAST_PATH_ANNOTATION];
  if (value === undefined || VALUES.includes(value)) return undefined;
  return { value, reason: `${FAST_PATH_ANNOTATION} must be ${VALUES.join(" or ")}; using off` };
}
