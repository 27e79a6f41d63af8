export { CROWD_CLIENTS, type CrowdNode, followCrowd } from "./crowd.ts";
export { type CrowdHistory, crowdHistory } from "./history.ts";
export { randomOf } from "./random.ts";
export { AffinityRule } from "./rule.ts";
export { servedCrowd } from "./served-crowd.ts";
export type { CrowdKernel } from "./traced-crowd.ts";
