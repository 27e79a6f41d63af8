export { createWindowsBackend } from "./backend.ts";
export { removeWindowsMode } from "./cleanup.ts";
export { windowsFacts, windowsSemantics } from "./facts.ts";
export { configuredOptions, type NodeAddress, type WindowsOptions } from "./options.ts";
export { featuresOf, type HnsFeatures, isOverlay } from "./plan/context.ts";
export type {
  Balancer,
  BalancerSettings,
  Endpoint,
  EndpointSettings,
  HcnPort,
  Network,
  Policy,
  PortMapping,
} from "./port.ts";
