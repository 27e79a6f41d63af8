export {
  type CrowdHistory,
  type CrowdNode,
  crowdHistory,
  followCrowd,
  randomOf,
} from "./crowd.ts";
export { type CrowdKernel, inRealTime, openRealCrowd, type RealCrowd, servedCrowd } from "./traced-crowd.ts";
