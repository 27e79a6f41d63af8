import { doctorsAdvice } from "./advice/specs.ts";
import { attacks } from "./attacks/index.ts";
import { deletedByHand } from "./connectivity/by-hand.ts";
import { connectivity } from "./connectivity/connectivity.ts";
import { agents } from "./faults/agents.ts";
import { apiServer } from "./faults/api-server.ts";
import { byHand } from "./faults/by-hand.ts";
import { clock } from "./faults/clock.ts";
import { consolePage } from "./faults/console.ts";
import { nftByHand } from "./faults/nft-by-hand.ts";
import { swaps } from "./faults/swap.ts";
import { instanceBesideFairlead, instanceBesideKubeProxy } from "./instances/beside.ts";
import { instanceOnLocalPorts } from "./instances/local-ports.ts";
import { secondaryBesideKubeProxy, secondaryBridge, secondaryNetwork } from "./instances/secondary.ts";
import { changes } from "./multi-cni/changes.ts";
import { elsewhere } from "./multi-cni/elsewhere.ts";
import { excludedClients, excludedClientsTogether } from "./multi-cni/excluded-clients.ts";
import { kubeOVNReject } from "./multi-cni/kube-ovn-reject.ts";
import { ownBalancer } from "./multi-cni/own-balancer.ts";
import { sideBySide } from "./multi-cni/side-by-side.ts";
import { webhook } from "./multi-cni/webhook.ts";
import { apiServer as networksFromServer } from "./networks/api-server.ts";
import { everyAnswer } from "./networks/authority/answers.ts";
import { attacksOnNetworks } from "./networks/authority/attacks.ts";
import { tooManyRequests } from "./networks/busy.ts";
import { flapping } from "./networks/flapping.ts";
import { migration } from "./networks/migration.ts";
import { openConnection } from "./networks/open-connection.ts";
import { recut } from "./networks/recut.ts";
import { everySource } from "./networks/sources.ts";
import { underLoad } from "./networks/under-load.ts";
import { upgrade } from "./networks/upgrade.ts";
import { userDefined } from "./networks/user-defined.ts";
import { defaultVpc } from "./networks/vpcs.ts";
import { rights } from "./rights/rights.ts";
import { rollout } from "./rollout/rollout.ts";
import { checker } from "./self-test/checker.ts";
import { agent, cli, watch } from "./services/api-server-tests.ts";
import { dns } from "./services/dns.ts";
import { endpoints } from "./services/endpoints.ts";
import { firstHour } from "./services/first-hour.ts";
import { policies } from "./services/policies.ts";
import { protocols } from "./services/protocols.ts";
import { reach } from "./services/reach.ts";
import { tools } from "./services/tools.ts";
import { sigNetwork } from "./sig-network/kubernetes.ts";
import { type SoakSettings, soak } from "./soak/soak.ts";
import type { Spec } from "./spec.ts";
import { twoUplinks, twoUplinksOfKubeProxy } from "./uplinks/uplinks.ts";

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
