import type { Advice } from "./advice.ts";
import type { Diagnosis, NodeFacts } from "./facts.ts";

export type Check = (facts: NodeFacts) => Diagnosis;

export const good = (check: string, found: string): Diagnosis => ({ check, state: "good", found });

const complaint =
  (state: Diagnosis["state"]) =>
  (check: string, found: string, { name, text }: Advice): Diagnosis => {
    return { check, state, found, advice: text, adviceName: name };
  };

export const warning = complaint("warning");
export const bad = complaint("bad");
export const unknown = complaint("unknown");
