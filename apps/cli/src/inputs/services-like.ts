import type { ServiceKey } from "@fairlead/core";
import type { Context } from "../frame/context.ts";
import type { OptionValues } from "../frame/options.ts";
import type { sourceOptions } from "./cluster-options.ts";
import { didYouMean } from "./did-you-mean.ts";
import { clusterNow } from "./source.ts";

/**
 * The services that may have been meant by one that there is not; "": none is like it. All are read anew for it: of
 * manifests only what had to do with the service was.
 */
export async function servicesLike(
  service: ServiceKey,
  options: OptionValues<typeof sourceOptions>,
  context: Context,
): Promise<string> {
  // Standard input was read to its end.
  if (options.file.includes("-")) return "";
  const { state } = await clusterNow(options, { ...context, warn: () => {} }, { slicesOf: () => new Set() });
  return didYouMean(
    service,
    [...state.keys()].filter((key) => state.service(key) !== undefined),
  );
}
