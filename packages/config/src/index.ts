export { formatDuration, parseDuration } from "./duration.ts";
export type * from "./mode-settings.ts";
export { withMode } from "./modes/with-mode.ts";
export type * from "./multi-cni-settings.ts";
export { parseArguments } from "./parse.ts";
export { formatError } from "./report.ts";
export { type InstanceDefaults, instanceDefaults } from "./resolve/instance.ts";
export type * from "./types.ts";
export { KUBE_PROXY_RELEASE } from "./version.ts";
