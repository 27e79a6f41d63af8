import { requireAgent } from "@fairlead/lab/agent";
import { type Lab, openLab } from "@fairlead/lab/plain/lab";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  type CrowdNode,
  type CrowdProxy,
  crowdLife,
  crowdPorts,
  FollowedCrowd,
  type LivedThrough,
  lifeReport,
  metReport,
  openCrowdNode,
} from "../../src/cases/crowds.ts";

/** What holds of the modes' memory of clients. */
interface Memory {
  readonly mode: "iptables" | "nftables";
  /** Whether an endpoint is known of as many clients as there are: a list of xt_recent holds 100. */
  readonly remembersAll: boolean;
  /** Whether Fairlead leads the first packets of a client, sent at once, to one endpoint. */
  readonly asksAgain: boolean;
  /** Whether kube-proxy knows the clients that Fairlead remembered: its nftables mode has sets of its own. */
  readonly isShared: boolean;
}

const MODES: readonly Memory[] = [
  { mode: "iptables", remembersAll: false, asksAgain: false, isShared: true },
  { mode: "nftables", remembersAll: true, asksAgain: true, isShared: false },
];

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

    async function live(proxy: CrowdProxy, { remembersAll }: Memory): Promise<LivedThrough> {
      await node.serve(proxy);
      const restart = () => node.serve(proxy);
      return crowdLife(node, { restart, remembersAll, sharesFrontends: true, whole: kubeProxy !== undefined });
    }

    test.for(MODES)("in $mode mode: each keeps its endpoint while it is usable", async (memory) => {
      const { mode, asksAgain } = memory;
      const lived = await live({ fairlead: mode }, memory);
      if (kubeProxy !== undefined) process.stdout.write(lifeReport(`Fairlead, ${mode}`, lived));
      expect(lived.met.filter(({ wrong }) => wrong !== undefined)).toEqual([]);
      if (asksAgain) expect(lived.split).toEqual({ IPv4: 0, IPv6: 0 });
    });

    if (kubeProxy === undefined) return;

    test.for(MODES)("the same with the real kube-proxy in $mode mode", async (memory) => {
      const { mode } = memory;
      const lived = await live({ kubeProxy, mode, variant: "nft" }, memory);
      process.stdout.write(lifeReport(`kube-proxy, ${mode}`, lived));
      expect(lived.met.filter(({ wrong }) => wrong !== undefined)).toEqual([]);
    });

    test.for(MODES)(
      "taken over in $mode mode from the real kube-proxy, given back, and taken over again",
      async ({ mode, isShared }) => {
        const theirs = { kubeProxy, mode, variant: "nft" } as const;
        const crowd = new FollowedCrowd(node, { name: "crowd", number: 1, seconds: 3600, endpoints: [0, 1, 2, 3, 4] });
        await node.serve(theirs);
        await crowd.change({});
        await crowd.connect("kube-proxy");
        await node.serve({ fairlead: mode });
        await crowd.connect("Fairlead");
        await node.serve(theirs);
        if (!isShared) crowd.forget();
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
