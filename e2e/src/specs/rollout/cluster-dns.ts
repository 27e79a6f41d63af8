/** CoreDNS behind its Service, asked by pods while its own pods are replaced, with Fairlead and with kube-proxy. */

import { fileURLToPath } from "node:url";
import { itemsOf, valueAt } from "@fairlead/base";
import type { ClusterShape } from "@fairlead/lab/provider/cluster";
import type { Script } from "@fairlead/lab/support/script";
import { kubectlSystem, needsKubelets, ROLLOUT_MS, whole, withKubeProxy } from "../operator.ts";
import { able, type Figures, type Scene, type Spec } from "../spec.ts";

const NAME = "CoreDNS is replaced, twice: lookups over UDP and TCP, in each family";

const common = { suite: "rollout", eachFamily: false, unfit: needsKubelets } as const;

export const clusterDns: readonly Spec[] = [
  {
    ...common,
    name: `${NAME}, of which none fails`,
    unfit: (shape) => needsKubelets(shape) ?? servedByNetwork(shape),
    run: async (scene) => withoutLoss(await replaced(scene)),
  },
  // It may lose some.
  { ...common, name: `${NAME}, with kube-proxy`, run: async (scene) => figures(await withKubeProxy(scene, replaced)) },
];

/** OVN loses some where an endpoint goes, whichever proxy is alongside: kube-proxy 2 of 4,354. */
function servedByNetwork({ networks: [first] }: ClusterShape): string | undefined {
  return first?.ownLoadBalancer ? `the load balancer of ${first.name} serves its pods, and no proxy does` : undefined;
}

const ENOUGH = 400;

function withoutLoss(counts: Counts): Figures {
  const { requests, failures } = counts;
  if (failures.length === 0) return figures(counts);
  throw new Error(`wanted no failed lookup; of ${requests} failed ${failures.length}: ${failures.join(", ")}`);
}

function figures({ requests, failures }: Counts): Figures {
  return { lookups: String(requests), failed: String(failures.length) };
}

async function replaced(scene: Scene): Promise<Counts> {
  const servers = await inEachFamily(scene);
  const type = scene.family === "IPv4" ? "A" : "AAAA";
  const lookups = await Promise.all(
    scene.nodes.map(async (node) => {
      const pod = await scene.pod({ node });
      return able(pod.startScript)(LOOKUPS, ["kubernetes.default.svc.cluster.local", type, ...servers]);
    }),
  );
  const seen = () => Promise.all(lookups.map(countsOf));
  const more = async (what: string) => {
    const before = await seen();
    await scene.until(`${ENOUGH} lookups of each pod ${what}`, async () => {
      const now = await seen();
      const fewest = Math.min(...now.map(({ requests }, at) => requests - (before[at]?.requests ?? 0)));
      return fewest >= ENOUGH ? undefined : String(fewest);
    });
  };
  const coreDNS = (...args: readonly string[]) =>
    kubectlSystem(whole(scene.cluster), "rollout", ...args, "deployment/coredns");
  await more("before");
  for (const time of ["once", "twice"]) {
    await coreDNS("restart");
    await coreDNS("status", `--timeout=${ROLLOUT_MS / 1000 - 10}s`);
    await more(`after CoreDNS was replaced ${time}`);
  }
  const counts = await seen();
  return {
    requests: counts.reduce((sum, { requests }) => sum + requests, 0),
    failures: counts.flatMap(({ failures }) => failures),
  };
}

const LOOKUPS = fileURLToPath(new URL("programs/lookups-main.ts", import.meta.url));

interface Counts {
  readonly requests: number;
  readonly failures: readonly string[];
}

async function countsOf(lookups: Script): Promise<Counts> {
  return JSON.parse(await lookups.ask("counts"));
}

/** kubeadm gives the Service an address of the first family; it has one of each while the spec lasts. */
async function inEachFamily({ cluster, later }: Scene): Promise<readonly string[]> {
  const path = "/api/v1/namespaces/kube-system/services/kube-dns";
  const become = (ipFamilyPolicy: string) => cluster.api.patch(path, { spec: { ipFamilyPolicy } });
  later(async () => void (await become("SingleStack")));
  return itemsOf(valueAt(await become("PreferDualStack"), "spec", "clusterIPs")).map(String);
}
