export { CROWD_CLIENTS, type CrowdNode, followCrowd } from "./crowd.ts";
export { type CrowdHistory, crowdHistory } from "./history.ts";
export { randomOf } from "./random.ts";
export { AffinityRule } from "./rule.ts";
export { type CrowdKernel, TracedCrowd } from "./traced-crowd.ts";
