import type { ClusterShape } from "@fairlead/lab/provider/cluster";
import { each } from "../every-node.ts";
import { needs } from "../needs.ts";
import type { Scene } from "../scene.ts";
import type { Figures, Spec } from "../spec.ts";
import { complaintsOf, openConnectivity } from "./run-connectivity.ts";

/** Fewer would mean that a kind of frontend or a place is missing. */
const LEAST_CASES = 30;

const COMMON = { suite: "swap", about: ["cli"], eachFamily: false, alone: true } as const;

/** Its pods are Pods of the API: kubelets run them, or the ground's stand-in for one. */
function needsPods(shape: ClusterShape): string | undefined {
  return shape.provider === "kind" ? undefined : needs("kubelet")(shape);
}

async function expectGreen(scene: Scene): Promise<Figures> {
  const connectivity = await openConnectivity(scene);
  const report = await connectivity.run();
  const complaints = complaintsOf(report);
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
  run: expectGreen,
};

const withKubeProxy: Spec = {
  ...COMMON,
  name: "fairlead connectivity: every case is as it should be with kube-proxy",
  unfit: (shape: ClusterShape) =>
    needs("kubelet")(shape) ?? (kubeProxy === "" ? "needs kube-proxy's program in FAIRLEAD_KUBE_PROXY" : undefined),
  run: async (scene) => {
    const { mode } = scene.cluster;
    scene.later(() => each(scene, async ({ agent }) => agent.swap?.({ mode })));
    await each(scene, async ({ agent }) => agent.swap?.({ mode, kubeProxy }));
    return expectGreen(scene);
  },
};

export const connectivity: readonly Spec[] = [withFairlead, withKubeProxy];
