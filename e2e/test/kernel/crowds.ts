import { requireAgent } from "@fairlead/lab/agent/agent-file";
import { type Lab, openLab } from "@fairlead/lab/two-nodes/lab";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type CrowdNode, type CrowdProxy, crowdPorts, openCrowdNode } from "../../src/cases/crowds/crowd-node.ts";
import { FollowedCrowd } from "../../src/cases/crowds/followed-crowd.ts";
import { crowdLife, type LivedThrough } from "../../src/cases/crowds/life.ts";
import { lifeReport, metReport } from "../../src/cases/crowds/report.ts";

const MODES = ["iptables", "nftables"] as const;
type Mode = (typeof MODES)[number];

/** Services with session affinity, with real packets. `FAIRLEAD_KUBE_PROXY` adds what the real kube-proxy does. */
export function crowds(kubeProxy?: string): void {
  describe("200 clients of a service with session affinity", () => {
    let lab: Lab;
    let node: CrowdNode;

    beforeEach(async () => {
      await requireAgent();
      lab = await openLab(crowdPorts);
      node = await openCrowdNode(lab);
    });

    afterEach(async () => {
      await node[Symbol.asyncDispose]();
      await lab.dispose();
    });

    async function live(proxy: CrowdProxy, mode: Mode): Promise<LivedThrough> {
      await node.serve(proxy);
      const restart = () => node.serve(proxy);
      const remembersAll = mode !== "iptables";
      return crowdLife(node, { restart, remembersAll, sharesFrontends: true, whole: kubeProxy !== undefined });
    }

    test.for(MODES)("in %s mode: each keeps its endpoint while it is usable", async (mode) => {
      const lived = await live({ fairlead: mode }, mode);
      if (kubeProxy !== undefined) process.stdout.write(lifeReport(`Fairlead, ${mode}`, lived));
      expect(lived.met.filter(({ wrong }) => wrong !== undefined)).toEqual([]);
      if (mode === "nftables") expect(lived.split).toEqual({ IPv4: 0, IPv6: 0 });
    });

    if (kubeProxy === undefined) return;

    test.for(MODES)("the same with the real kube-proxy in %s mode", async (mode) => {
      const lived = await live({ kubeProxy, mode, variant: "nft" }, mode);
      process.stdout.write(lifeReport(`kube-proxy, ${mode}`, lived));
      expect(lived.met.filter(({ wrong }) => wrong !== undefined)).toEqual([]);
    });

    test.for(MODES)(
      "taken over in %s mode from the real kube-proxy, given back, and taken over again",
      async (mode) => {
        const theirs = { kubeProxy, mode, variant: "nft" } as const;
        const crowd = new FollowedCrowd(node, { name: "crowd", number: 1, seconds: 3600, endpoints: [0, 1, 2, 3, 4] });
        await node.serve(theirs);
        await crowd.change({});
        await crowd.connect("kube-proxy");
        await node.serve({ fairlead: mode });
        await crowd.connect("Fairlead");
        await node.serve(theirs);
        // Its nftables mode has sets of its own and knows no other memory.
        if (mode === "nftables") crowd.forget();
        await crowd.connect("kube-proxy again");
        await crowd.connect("kube-proxy, once more");
        await node.serve({ fairlead: mode });
        await crowd.connect("Fairlead again");
        process.stdout.write(`${mode}, taken over:\n${metReport(crowd.met)}`);
        expect(crowd.met.filter(({ wrong }) => wrong !== undefined)).toEqual([]);
      },
    );
  });
}
