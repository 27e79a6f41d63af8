import { type CrowdProxy, openCrowdNode } from "../cases/crowds/crowd-node.ts";
import { crowdLife } from "../cases/crowds/life.ts";
import { lifeReport } from "../cases/crowds/report.ts";
import type { Spec } from "./suite.ts";

/** 200 clients of a service with session affinity, of each family; the real kube-proxy's, too, where there is one. */
export const crowdSpecs = (kubeProxy: string): readonly Spec[] => [
  crowdSpec("Fairlead", { fairlead: "ipvs" }),
  ...(kubeProxy === "" ? [] : [crowdSpec("the real kube-proxy", { kubeProxy, mode: "ipvs", variant: "legacy" })]),
];

function crowdSpec(who: string, proxy: CrowdProxy): Spec {
  return {
    name: `ipvs crowds: with ${who} each of 200 clients keeps its endpoint while it is usable`,
    run: async (lab) => {
      await using node = await openCrowdNode(lab);
      try {
        await node.serve(proxy);
        const restart = () => node.serve(proxy);
        const lived = await crowdLife(node, { restart, remembersAll: true, sharesFrontends: false, whole: true });
        process.stderr.write(lifeReport(`${who}, ipvs`, lived));
        return lived.met.flatMap(({ step, family, wrong }) =>
          wrong === undefined ? [] : `${step}, ${family}: ${wrong}`,
        );
      } finally {
        await node.cleanUp();
      }
    },
  };
}
