import type { AgentConfig } from "@fairlead/config";
import { selectionOf } from "@fairlead/intake";
import { createManifestsSource, type ObjectSource, type SourceReport } from "@fairlead/watch";
import type { Context } from "../frame/context.ts";
import { UsageError } from "../frame/errors.ts";
import type { OptionValues } from "../frame/options.ts";
import { apiSource, connect, nodeNameOf, warnOf } from "./api-source.ts";
import type { sourceOptions } from "./cluster-options.ts";
import { failureText } from "./server-failure.ts";

/**
 * The objects and every change of them, of one manifest path or of a cluster. What goes wrong is warned of and tried
 * again.
 *
 * @throws CommandFailure when no cluster is known; UsageError when the manifests cannot be followed
 */
export async function liveSource(
  options: OptionValues<typeof sourceOptions>,
  config: Pick<AgentConfig, "serviceNetwork" | "serviceProxyName">,
  context: Context,
  onReport: (report: SourceReport) => void = () => {},
): Promise<ObjectSource> {
  const selection = { nodeName: nodeNameOf(options), ...selectionOf(config) };
  const [path, ...others] = options.file;
  const reported = (report: SourceReport) => {
    onReport(report);
    warnOf(report, context);
  };
  if (path === undefined) {
    return apiSource(await connect(options, context), selection, (report) => {
      if (report.type === "failing") context.warn(failureText(report));
      reported(report);
    });
  }
  if (path === "-" || others.length > 0) throw new UsageError("--file: only one file or folder can be followed");
  return createManifestsSource({ path, ...selection, onReport: reported });
}
