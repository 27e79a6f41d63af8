import { SLICES_MANAGER } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import type { ApiSourceOptions } from "@fairlead/watch";

/** Which Services and EndpointSlices an agent asks a source for. */
export function selectionOf({
  serviceProxyName,
  serviceNetwork,
}: Pick<AgentConfig, "serviceNetwork" | "serviceProxyName">): Pick<
  ApiSourceOptions,
  "serviceProxyName" | "slicesManagedBy"
> {
  return { serviceProxyName, ...(serviceNetwork && { slicesManagedBy: SLICES_MANAGER }) };
}
