export { DIFFERENCE_KINDS, type Difference, type DifferenceKind, type Subject } from "./difference.ts";
export { groupDifferences } from "./group-differences.ts";
export { ownRules } from "./own-rules.ts";
export { Rounds } from "./rounds.ts";
export { straysIn } from "./strays.ts";
export { type News, type Suspicion, Suspicions } from "./suspicions.ts";
export { type View, viewOf } from "./view.ts";
