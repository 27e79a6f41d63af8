export {
  type ControllerConfig,
  type ControllerJob,
  type ControllerParseResult,
  parseControllerArguments,
} from "./controller.ts";
export { formatDuration, parseDuration } from "./duration.ts";
export { type FastPathNetworks, fastPathNetworks, whyNotAuto, withMode } from "./modes/modes.ts";
export { mostUplinks, REPLY_TABLE } from "./modes/reply-via.ts";
export { configFileOf, parseArguments } from "./parse.ts";
export { formatError } from "./report.ts";
export { type InstanceDefaults, instanceDefaults } from "./resolve/instance.ts";
export { PROXY_MODES } from "./table/kube-proxy.ts";
export { type ConfigurationKind, INVALID_VALUE, shareableConfiguration } from "./table/shareable.ts";
export type * from "./types.ts";
export { KUBE_PROXY_RELEASE } from "./version.ts";
