import { flag, text } from "../../frame/options.ts";
import { clusterOptions, namespaceOption } from "../../inputs/cluster-options.ts";
import { kernelOptions } from "../../inputs/node-options.ts";
import { outputOption } from "../../output/output.ts";
import { filterOptions } from "./filter-options.ts";

/** Whose connections, and of which node. */
export const connectionOptions = {
  ...clusterOptions,
  namespace: namespaceOption,
  on: kernelOptions.on,
  service: text("SERVICE", "Only connections of it: [NAMESPACE/]SERVICE[:PORT], or an address of it."),
  ...filterOptions,
  output: outputOption,
} as const;

export const flowsOptions = {
  ...connectionOptions,
  follow: flag("Also print each connection that begins or ends, until interrupted."),
  for: text("SECONDS", "End --follow after this time. Default: never."),
  limit: text("NUMBER", "End after this number of connections; with --follow, of lines. Default: never."),
} as const;
