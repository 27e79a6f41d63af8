import type { LearnedAnswer } from "../../protocol/index.ts";
import type { Tone } from "../findings.ts";
import { Badge } from "./badge.tsx";

type LearnedStage = NonNullable<LearnedAnswer["networks"]>["cidrs"][number]["stage"];

const STAGES: Readonly<Record<LearnedStage, readonly [Tone, string]>> = {
  effective: ["good", "counts"],
  held: ["warn", "held back"],
  refused: ["bad", "refused"],
};

/** What becomes of a learned CIDR. */
export function Stage({ stage }: { readonly stage: LearnedStage }) {
  const [tone, text] = STAGES[stage];
  return <Badge tone={tone} text={text} />;
}

/** On which side a CIDR is. */
export const WHOSE = { own: "ours", excluded: "another network's" } as const;
