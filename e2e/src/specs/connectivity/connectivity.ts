import type { ClusterShape, Removable } from "@fairlead/lab/provider/cluster";
import { each } from "../every-node.ts";
import { NAME } from "../instances/named.ts";
import { able, needs } from "../needs.ts";
import type { Scene } from "../scene.ts";
import type { Figures, Spec } from "../spec.ts";
import { type Connectivity, complaintsOf, FOREIGN, leftOut, openConnectivity } from "./run-connectivity.ts";

/** Fewer would mean that a kind of frontend or a place is missing. */
const LEAST_CASES = 30;

const COMMON = { suite: "swap", about: ["cli"], eachFamily: false, alone: true } as const;

/** Its pods are Pods of the API: kubelets run them, or the ground's stand-in for one. */
function needsPods(shape: ClusterShape): string | undefined {
  return shape.provider === "kind" ? undefined : needs("kubelet")(shape);
}

async function expectGreen(scene: Scene, connectivity: Connectivity, ...more: readonly string[]): Promise<Figures> {
  const report = await connectivity.run(...more);
  const complaints = [...complaintsOf(report), ...leftOut(scene, report)];
  if (complaints.length > 0) throw new Error(`wanted no complaint; came\n${complaints.join("\n")}`);
  const { length } = report.cases;
  const least = LEAST_CASES * scene.cluster.families.length;
  if (length < least) throw new Error(`wanted ${least} cases at least; came ${length}`);
  return { cases: String(length), checks: report.checks.map(({ name }) => name).join(", ") };
}

const { FAIRLEAD_KUBE_PROXY: kubeProxy = "" } = process.env;

const withFairlead: Spec = {
  ...COMMON,
  name: "fairlead connectivity: every case is as it should be",
  unfit: needsPods,
  run: async (scene) => {
    const connectivity = await openConnectivity(scene);
    const isAlone = !scene.cluster.networks.some(({ excluded }) => excluded);
    if (isAlone) return expectGreen(scene, connectivity);
    const figures = await expectGreen(scene, connectivity, "--keep");
    await expectNotForeign(scene, connectivity);
    return figures;
  },
};

/** A network that the agents serve, given as another one's. @throws Error unless that is seen */
async function expectNotForeign({ network, family }: Scene, { run }: Connectivity): Promise<void> {
  const own = network.podCIDRs[family] ?? "";
  const { checks } = await run("--keep", "--no-update", "--patience", "5", "--exclude-cluster-cidr", own);
  const { complaint = "none" } = checks.find(({ name }) => name === FOREIGN) ?? {};
  if (/web-foreign on \S+: .*the agent takes it for ours/.test(complaint)) return;
  throw new Error(`wanted a complaint of a service in ${own}, which is the agents' own; came ${complaint}`);
}

const withKubeProxy: Spec = {
  ...COMMON,
  name: "fairlead connectivity: every case is as it should be with kube-proxy",
  unfit: (shape: ClusterShape) =>
    needs("kubelet")(shape) ?? (kubeProxy === "" ? "needs kube-proxy's program in FAIRLEAD_KUBE_PROXY" : undefined),
  run: async (scene) => {
    const { mode } = scene.cluster;
    scene.later(() => each(scene, async ({ agent }) => agent.swap?.({ mode })));
    await each(scene, async ({ agent }) => agent.swap?.({ mode, kubeProxy }));
    return expectGreen(scene, await openConnectivity(scene));
  },
};

const withInstance: Spec = {
  ...COMMON,
  name: "fairlead connectivity --service-proxy-name: every case is as it should be with a second instance",
  unfit: (shape) => needs("kubelet")(shape) ?? needs("instance")(shape),
  run: async (scene) => {
    const instances: Removable[] = [];
    scene.later(() => Promise.all(instances.map((one) => one.remove())).then(() => {}));
    await each(scene, async (node) => void instances.push(await able(node.startInstance)(NAME)));
    return expectGreen(scene, await openConnectivity(scene), "--service-proxy-name", NAME);
  },
};

export const connectivity: readonly Spec[] = [withFairlead, withKubeProxy, withInstance];
