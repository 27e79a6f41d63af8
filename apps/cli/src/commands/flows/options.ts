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
  follow: flag("Then print each connection that begins or ends, until interrupted."),
  for: text("SECONDS", "Ends --follow after so long. Default: never."),
  limit: text("NUMBER", "Ends after so many connections; with --follow after so many lines. Default: never."),
} as const;
