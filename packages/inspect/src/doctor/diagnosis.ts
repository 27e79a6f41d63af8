import type { Diagnosis, NodeFacts } from "./facts.ts";

export type Check = (facts: NodeFacts) => Diagnosis;

export const good = (check: string, found: string): Diagnosis => ({ check, state: "good", found });

const complaint =
  (state: Diagnosis["state"]) =>
  (check: string, found: string, advice: string): Diagnosis => ({ check, state, found, advice });

export const warning = complaint("warning");
export const bad = complaint("bad");
export const unknown = complaint("unknown");

/** What gives the right to look. */
export const AS_ROOT = "run as root, with NET_ADMIN and in the host's network namespace";
