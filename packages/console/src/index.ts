export { type Answers, type ConsoleOptions, type RunningConsole, startConsole } from "./console.ts";
export { RequestError } from "./guard.ts";
export { LiveCluster } from "./model/cluster.ts";
export { UnusableObjects } from "./model/follow.ts";
export { FlowRates, type NodePorts, SourceHealth, shownFlows } from "./model/nodes.ts";
export type { AgentSetup } from "./model/plans.ts";
export { type Change, type ChangedPlans, changedPlans } from "./model/what-if.ts";
export type * from "./protocol.ts";
export type { Answer } from "./server.ts";
