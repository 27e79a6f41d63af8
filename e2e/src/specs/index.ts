import { doctorsAdvice } from "./advice/specs.ts";
import { attacks } from "./attacks/specs.ts";
import { connectivity, deletedByHand } from "./connectivity.ts";
import { agents, clock, swaps } from "./faults/agents.ts";
import { apiServer } from "./faults/api-server.ts";
import { nodeDies } from "./faults/node-gone.ts";
import { loadBalancer } from "./load-balancer.ts";
import { changes, excludedClients, excludedClientsTogether } from "./multi-cni/excluded-clients.ts";
import { kubeOVNReject, ownBalancer } from "./multi-cni/own-balancer.ts";
import { sideBySide } from "./multi-cni/side-by-side.ts";
import { networkPolicies } from "./network-policies.ts";
import { apiServer as networksFromServer } from "./networks/api-server.ts";
import { everyAnswer } from "./networks/authority/answers.ts";
import { attacksOnNetworks } from "./networks/authority/attacks.ts";
import { migration, underLoad } from "./networks/migration.ts";
import { recut } from "./networks/recut.ts";
import { defaultVpc, everySource, openConnection, userDefined } from "./networks/sources.ts";
import { rights } from "./rights.ts";
import { clusterDns } from "./rollout/cluster-dns.ts";
import { rollout } from "./rollout/rollout.ts";
import {
  instanceFromOverlay,
  instanceOnLocalPorts,
  secondaryAlongsideKubeProxy,
  secondaryBridge,
  secondaryNetwork,
} from "./secondary.ts";
import { dns, localDns } from "./services/dns.ts";
import { policies } from "./services/policies.ts";
import { endpoints, protocols, reach } from "./services/reach.ts";
import { agent, cli, firstHour, tools, watch } from "./services/tools.ts";
import { gatewaySuite, sigNetwork } from "./sig-network.ts";
import { type SoakSettings, soak } from "./soak.ts";
import type { Spec } from "./spec.ts";

/** All specs, in the order in which they are run. */
export const specsFor = (settings: SoakSettings): readonly Spec[] => [
  ...reach,
  ...policies,
  ...endpoints,
  ...protocols,
  dns,
  localDns,
  agent,
  cli,
  watch,
  tools,
  firstHour,
  rights,
  ...sideBySide,
  ...ownBalancer,
  ...changes,
  excludedClients,
  excludedClientsTogether,
  kubeOVNReject,
  openConnection,
  instanceOnLocalPorts,
  secondaryNetwork,
  secondaryBridge,
  underLoad,
  everySource,
  networksFromServer,
  defaultVpc,
  userDefined,
  everyAnswer,
  recut,
  ...migration,
  ...attacksOnNetworks,
  ...networkPolicies,
  ...agents,
  ...apiServer,
  ...clock,
  ...nodeDies,
  ...doctorsAdvice,
  ...swaps,
  ...connectivity,
  secondaryAlongsideKubeProxy,
  ...attacks,
  deletedByHand,
  soak(settings),
  ...sigNetwork,
  ...rollout,
  instanceFromOverlay,
  ...clusterDns,
  ...loadBalancer,
  gatewaySuite,
];
