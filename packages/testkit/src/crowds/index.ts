export { type CrowdNode, followCrowd } from "./crowd.ts";
export { type CrowdHistory, crowdHistory } from "./history.ts";
export { randomOf } from "./random.ts";
export { AffinityRule } from "./rule.ts";
export { CROWD_ADDRESS, crowdObjects, FIRST_SERVICE } from "./service.ts";
export { type CrowdKernel, TracedCrowd } from "./traced-crowd.ts";
