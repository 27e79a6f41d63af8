import type { ConformanceCase } from "./case.ts";
import { ipModeCases, nodePortRangesCases, noLocalEndpointCases } from "./cases/annotations.ts";
import { clusterIPCases, dnsCases, dualStackCases, hairpinCases, sctpCases } from "./cases/cluster-ip.ts";
import { affinityCases, terminatingCases, topologyCases } from "./cases/endpoints.ts";

import { loadBalancerCases, policyCases } from "./cases/load-balancer.ts";
import { chosenNodePortCases, externalCases, nodePortCases } from "./cases/node-port.ts";
import { foreignCases, memoryCases, mixedCases } from "./cases/ownership.ts";
import { clusterCIDRCases, excludedClientsCases, localDetectionCases } from "./cases/senders.ts";
import { weightCases } from "./cases/weights.ts";

/**
 * The conformance table: what becomes of a packet, in each mode. It knows nothing of how a mode does it, so one table
 * is for all backends, for the tracer over the fakes and for real packets on a real kernel.
 */
export const conformanceTable: readonly ConformanceCase[] = [
  ...clusterIPCases,
  ...dnsCases,
  ...hairpinCases,
  ...nodePortCases,
  ...chosenNodePortCases,
  ...externalCases,
  ...loadBalancerCases,
  ...policyCases,
  ...nodePortRangesCases,
  ...noLocalEndpointCases,
  ...ipModeCases,
  ...terminatingCases,
  ...topologyCases,
  ...affinityCases,
  ...weightCases,
  ...foreignCases,
  ...excludedClientsCases,
  ...mixedCases,
  ...memoryCases,
  ...clusterCIDRCases,
  ...localDetectionCases,
  ...dualStackCases,
  ...sctpCases,
];
