import { doctorsAdvice } from "./advice/specs.ts";
import { attacks } from "./attacks/specs.ts";
import { connectivity, deletedByHand } from "./connectivity.ts";
import { agents, clock, swaps } from "./faults/agents.ts";
import { apiServer, consolePage } from "./faults/api-server.ts";
import { byHand, nftByHand } from "./faults/by-hand.ts";
import { instanceBesideFairlead, instanceBesideKubeProxy, instanceOnLocalPorts } from "./instances.ts";
import { changes, excludedClients, excludedClientsTogether } from "./multi-cni/excluded-clients.ts";
import { kubeOVNReject, ownBalancer, webhook } from "./multi-cni/own-balancer.ts";
import { elsewhere, sideBySide } from "./multi-cni/side-by-side.ts";
import { apiServer as networksFromServer, tooManyRequests } from "./networks/api-server.ts";
import { everyAnswer } from "./networks/authority/answers.ts";
import { attacksOnNetworks } from "./networks/authority/attacks.ts";
import { flapping, migration, underLoad } from "./networks/migration.ts";
import { defaultVpc, everySource, openConnection, userDefined } from "./networks/sources.ts";
import { recut, upgrade } from "./networks/upgrade.ts";
import { rights } from "./rights.ts";
import { rollout } from "./rollout/rollout.ts";
import { secondaryBesideKubeProxy, secondaryBridge, secondaryNetwork } from "./secondary.ts";
import { checker } from "./self-test.ts";
import { policies } from "./services/policies.ts";
import { dns, endpoints, protocols, reach } from "./services/reach.ts";
import { agent, cli, firstHour, tools, watch } from "./services/tools.ts";
import { sigNetwork } from "./sig-network.ts";
import { type SoakSettings, soak } from "./soak.ts";
import type { Spec } from "./spec.ts";
import { twoUplinks, twoUplinksOfKubeProxy } from "./uplinks.ts";

/** All specs, in the order in which they are run. */
export const specsFor = (settings: SoakSettings): readonly Spec[] => [
  ...reach,
  ...policies,
  ...endpoints,
  ...protocols,
  dns,
  agent,
  cli,
  watch,
  tools,
  firstHour,
  rights,
  ...sideBySide,
  ...ownBalancer,
  ...changes,
  ...elsewhere,
  excludedClients,
  excludedClientsTogether,
  kubeOVNReject,
  webhook,
  openConnection,
  instanceBesideFairlead,
  instanceOnLocalPorts,
  secondaryNetwork,
  secondaryBridge,
  twoUplinks,
  underLoad,
  everySource,
  networksFromServer,
  defaultVpc,
  userDefined,
  tooManyRequests,
  everyAnswer,
  recut,
  flapping,
  ...migration,
  upgrade,
  ...attacksOnNetworks,
  ...agents,
  ...apiServer,
  ...clock,
  ...byHand,
  consolePage,
  ...doctorsAdvice,
  ...nftByHand,
  ...swaps,
  ...connectivity,
  instanceBesideKubeProxy,
  secondaryBesideKubeProxy,
  twoUplinksOfKubeProxy,
  ...attacks,
  ...checker,
  deletedByHand,
  soak(settings),
  ...sigNetwork,
  ...rollout,
];
