import type { ConformanceCase } from "./case.ts";
import { affinityCases } from "./cases/affinity.ts";
import { chosenNodePortCases } from "./cases/chosen-node-ports.ts";
import { clusterCIDRCases } from "./cases/cluster-cidrs.ts";
import { clusterIPCases } from "./cases/cluster-ip.ts";
import { dnsCases } from "./cases/dns.ts";
import { dualStackCases } from "./cases/dual-stack.ts";
import { excludedClientsCases } from "./cases/excluded-clients.ts";
import { externalCases } from "./cases/external.ts";
import { foreignCases } from "./cases/foreign.ts";
import { hairpinCases } from "./cases/hairpin.ts";
import { loadBalancerCases } from "./cases/load-balancer.ts";
import { localDetectionCases } from "./cases/local-detection.ts";
import { memoryCases } from "./cases/memory.ts";
import { mixedCases } from "./cases/mixed.ts";
import { nodePortCases } from "./cases/node-port.ts";
import { policyCases } from "./cases/policies.ts";
import { sctpCases } from "./cases/sctp.ts";
import { terminatingCases } from "./cases/terminating.ts";
import { topologyCases } from "./cases/topology.ts";

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
  ...terminatingCases,
  ...topologyCases,
  ...affinityCases,
  ...foreignCases,
  ...excludedClientsCases,
  ...mixedCases,
  ...memoryCases,
  ...clusterCIDRCases,
  ...localDetectionCases,
  ...dualStackCases,
  ...sctpCases,
];
