import { doctorsAdvice } from "./advice/specs.ts";
import { attacks } from "./attacks/index.ts";
import { connectivity, deletedByHand } from "./connectivity.ts";
import { agents, clock } from "./faults/agents.ts";
import { apiServer } from "./faults/api-server.ts";
import { byHand, nftByHand } from "./faults/by-hand.ts";
import { consolePage } from "./faults/console.ts";
import { swaps } from "./faults/swap.ts";
import { instanceBesideFairlead, instanceBesideKubeProxy, instanceOnLocalPorts } from "./instances.ts";
import { changes } from "./multi-cni/changes.ts";
import { excludedClients, excludedClientsTogether } from "./multi-cni/excluded-clients.ts";
import { kubeOVNReject, ownBalancer } from "./multi-cni/own-balancer.ts";
import { elsewhere, sideBySide } from "./multi-cni/side-by-side.ts";
import { webhook } from "./multi-cni/webhook.ts";
import { apiServer as networksFromServer, tooManyRequests } from "./networks/api-server.ts";
import { everyAnswer } from "./networks/authority/answers.ts";
import { attacksOnNetworks } from "./networks/authority/attacks.ts";
import { flapping, migration, underLoad } from "./networks/migration.ts";
import { recut } from "./networks/recut.ts";
import { defaultVpc, everySource, openConnection, userDefined } from "./networks/sources.ts";
import { upgrade } from "./networks/upgrade.ts";
import { rights } from "./rights.ts";
import { rollout } from "./rollout/rollout.ts";
import { secondaryBesideKubeProxy, secondaryBridge, secondaryNetwork } from "./secondary.ts";
import { checker } from "./self-test.ts";
import { policies } from "./services/policies.ts";
import { dns, protocols } from "./services/protocols.ts";
import { endpoints, reach } from "./services/reach.ts";
import { agent, cli, firstHour, tools, watch } from "./services/tools.ts";
import { sigNetwork } from "./sig-network.ts";
import { type SoakSettings, soak } from "./soak/soak.ts";
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
