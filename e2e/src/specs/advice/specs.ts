import type { Diagnosis } from "@fairlead/inspect";
import type { NodeProxy } from "@fairlead/lab/provider/cluster";
import { openStage } from "../faults/stage.ts";
import { able, needs, onlyIn } from "../needs.ts";
import type { Scene } from "../scene.ts";
import type { Figures, Spec } from "../spec.ts";
import { followAdvice, textOf } from "./advice-case.ts";
import { type Bench, fullyGiven, openBench, printed } from "./bench.ts";
import { adviceCases } from "./index.ts";

const { FAIRLEAD_KUBE_PROXY: kubeProxy = "" } = process.env;

const COMMON: Pick<Spec, "suite" | "about" | "eachFamily" | "alone" | "unfit"> = {
  suite: "faults",
  about: ["cli"],
  eachFamily: false,
  alone: true,
  unfit: (shape) =>
    onlyIn(["iptables", "nftables"], "doctor's advice is followed in iptables and nftables mode")(shape) ??
    needs("attack", "agents have to be processes of this machine")(shape) ??
    (kubeProxy === "" ? "needs kube-proxy's program in FAIRLEAD_KUBE_PROXY" : undefined),
};

/** Each in turn, on one node under requests. */
async function followAll(scene: Scene, proxy: NodeProxy): Promise<Figures> {
  const bench = await openBench(scene, proxy);
  await serve(bench);
  const stage = await openStage(scene);
  const fit = adviceCases.filter(
    ({ modes, anyProxy }) =>
      (modes?.includes(proxy.mode) ?? true) && (proxy.kubeProxy === undefined || anyProxy === true),
  );
  let [requests, failed] = [0, 0];
  for (const one of fit) {
    const seen = await followAdvice(bench, one, stage).catch((error: Error) => {
      throw new Error(`${one.advice}, ${one.what}: ${error.message}`, { cause: error });
    });
    requests += seen.requests;
    failed += seen.failures.length;
  }
  return { "advice followed": String(fit.length), requests: String(requests), failed: String(failed) };
}

/** The node has that proxy until the spec ends. */
async function serve({ scene, node, proxy }: Bench): Promise<void> {
  if (proxy.kubeProxy === undefined) return;
  const swap = able(node.agent.swap);
  scene.later(() => swap({ mode: proxy.mode }));
  await swap(proxy);
}

const followed: Spec = {
  ...COMMON,
  name: "doctor: each advice is followed to the letter, alongside Fairlead, without a failed request",
  run: (scene, { mode }) => followAll(scene, { mode }),
};

const followedBesideKubeProxy: Spec = {
  ...COMMON,
  name: "doctor: each advice is followed to the letter, alongside kube-proxy, without a failed request",
  run: (scene, { mode }) => followAll(scene, { mode, kubeProxy }),
};

/** Nothing on a node that is well is to be changed. */
const healthy: Spec = {
  ...COMMON,
  name: "doctor: on a healthy node no advice has a command, in each mode, alongside Fairlead and kube-proxy",
  run: async (scene, { mode: own }) => {
    const swap = able(scene.nodes[1].agent.swap);
    scene.later(() => swap({ mode: own }));
    const seen = new Set<string>();
    const proxies = ["iptables", "nftables"].flatMap((mode) => [{ mode }, { mode, kubeProxy }]);
    for (const proxy of [...proxies, { mode: "userspace" }]) {
      await swap(proxy);
      for (const one of await saidOf(await openBench(scene, proxy))) seen.add(one.adviceName ?? "");
    }
    return { "advice on healthy nodes": [...seen].sort().join(", ") };
  },
};

/** However it is asked. @throws Error when something is bad, or an advice has a command */
async function saidOf(bench: Bench): Promise<readonly Diagnosis[]> {
  const { node, operator, proxy } = bench;
  const ways = [
    () => bench.doctor(),
    () => bench.doctor(fullyGiven(bench)),
    async () => JSON.parse((await operator.ask("doctor", "--on", node.name, "-o", "json")).out) as readonly Diagnosis[],
  ];
  const said: Diagnosis[] = [];
  for (const ask of ways) said.push(...(await ask()).filter(({ advice }) => advice !== undefined));
  const wrong = said.filter((one) => one.state === "bad" || printed(one).commands.length > 0);
  if (wrong.length === 0) return said;
  throw new Error(`${proxy.kubeProxy ?? "Fairlead"} in ${proxy.mode} mode: ${textOf(wrong)}`);
}

export const doctorsAdvice: readonly Spec[] = [followed, followedBesideKubeProxy, healthy];
