export { type Answers, type ConsoleOptions, type RunningConsole, startConsole } from "./console.ts";
export { type AgentSetup, LiveCluster } from "./model/cluster.ts";
export { shownFlows } from "./model/flows.ts";
export type { NodePorts } from "./model/looks.ts";
export { UnusableObjects } from "./model/unusable.ts";
export { type Change, type ChangedPlans, changedPlans } from "./model/what-if.ts";
export type * from "./protocol.ts";
export { RequestError } from "./server/request-error.ts";
export type { Answer } from "./server/server.ts";
