export {
  AffinityRule,
  CROWD_CLIENTS,
  type CrowdHistory,
  type CrowdNode,
  crowdHistory,
  followCrowd,
  randomOf,
} from "./crowd.ts";
export { type CrowdKernel, servedCrowd } from "./traced-crowd.ts";
