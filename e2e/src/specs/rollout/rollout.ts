import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { Cluster, WholeKubernetes } from "@fairlead/lab/provider/cluster";
import { FAIRLEAD_IMAGE } from "@fairlead/lab/provider/kind/fairlead";
import { withoutFailure } from "../faults/traffic.ts";
import { endpointAt } from "../multi-cni/endpoint-at.ts";
import { expectForeign, expectNoTrace } from "../multi-cni/untouched.ts";
import { onlyIPv4 } from "../needs.ts";
import type { Spec } from "../spec.ts";
import { until } from "../until.ts";
import { backToFairlead, kubectlSystem, needsKubelets, ROLLOUT_MS, removeProxy, whole } from "../whole-kubernetes.ts";
import { expectServed, startLoad, TRAFFIC_MS } from "./load.ts";
import { nodesLookedAt } from "./look.ts";
import { migrations } from "./migrate.ts";
import { migratedMode } from "./migrate-mode.ts";

const common = { suite: "rollout", eachFamily: false, alone: true, unfit: needsKubelets } as const;

const START_MS = 60_000;
/** The manifest that operators run for two pod networks; its image is the one thing that is Fairlead's. */
const foundingCase = fileURLToPath(new URL("../../../../deploy/test/fixtures/founding-case.yaml", import.meta.url));

const swap: Spec = {
  ...common,
  name: "Fairlead → kube-proxy → Fairlead in its DaemonSet → kube-proxy → Fairlead, under load",
  run: async (scene, cluster) => {
    const kubernetes = whole(cluster);
    const traffic = await startLoad(scene);
    const step = async (name: string, change: () => Promise<void>) => {
      await change();
      await expectServed(scene, name);
    };
    scene.later(() => backToFairlead(cluster));
    await step("kube-proxy", async () => {
      await kubernetes.addKubeProxy();
      await removeProxy(kubernetes, "fairlead");
    });
    await step("its-image", async () => {
      await kubectlSystem(kubernetes, "set", "image", "daemonset/kube-proxy", `kube-proxy=${FAIRLEAD_IMAGE}`);
      await rolledOut(kubernetes);
      await expectFairlead(cluster);
    });
    await step("undone", async () => {
      await kubectlSystem(kubernetes, "rollout", "undo", "daemonset/kube-proxy");
      await rolledOut(kubernetes);
    });
    await step("fairlead", async () => {
      await removeProxy(kubernetes, "kube-proxy");
      await kubernetes.addFairlead();
    });
    const seen = await traffic.stop();
    const reported = withoutFailure(seen);
    if (seen.endedEarly) throw new Error(`wanted traffic all the while; it ended after ${TRAFFIC_MS} ms`);
    return reported;
  },
};

/** An address in the manifest's excluded CIDR. */
const OTHERS_ENDPOINT = "10.244.9.9";

const founding: Spec = {
  ...common,
  name: "the founding case's manifest, with only the image changed: it serves, and leaves OVN's services alone",
  unfit: (shape) => needsKubelets(shape) ?? onlyIPv4("its CIDRs are IPv4")(shape),
  run: async (scene, cluster) => {
    const kubernetes = whole(cluster);
    const manifest = (await readFile(foundingCase, "utf8")).replace(/server: .*/, `server: ${cluster.apiServer.url}`);
    scene.later(() => backToFairlead(cluster));
    await removeProxy(kubernetes, "fairlead");
    await kubernetes.kubectl(["apply", "-f", "-"], { input: manifest });
    await rolledOut(kubernetes);
    await expectServed(scene, "ours");
    const theirs = await scene.service("theirs", { ports: [{ port: 80 }] });
    const { namespace } = scene;
    await cluster.api.create(endpointAt({ namespace, service: "theirs", family: "IPv4", address: OTHERS_ENDPOINT }));
    await expectForeign({ ...scene, family: "IPv4" }, "theirs");
    await expectNoTrace(scene, theirs.clusterIP);
  },
};

export const rollout: readonly Spec[] = [swap, ...migrations, migratedMode, nodesLookedAt, founding];

async function rolledOut(kubernetes: WholeKubernetes): Promise<void> {
  await kubectlSystem(kubernetes, "rollout", "status", "daemonset/kube-proxy", `--timeout=${ROLLOUT_MS / 1000 - 10}s`);
}

/** kube-proxy's DaemonSet has no probes: a container that has started is ready, whether it serves or not. */
async function expectFairlead({ nodes }: Cluster): Promise<void> {
  await until(
    "Fairlead on every node",
    async () => {
      const answers = nodes.map(({ agent }) => agent.get("/ownership").then(JSON.parse));
      const failed = (await Promise.allSettled(answers)).filter(({ status }) => status === "rejected");
      return failed.length === 0 ? undefined : `no answer on ${failed.length} nodes`;
    },
    START_MS,
  );
}
