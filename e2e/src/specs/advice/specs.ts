import type { AdviceName, Diagnosis } from "@fairlead/inspect";
import type { NodeProxy } from "@fairlead/lab/provider/cluster";
import { openStage } from "../faults/stage.ts";
import { KUBE_PROXY, lackingKubeProxy } from "../operator.ts";
import { able, type Figures, needs, onlyIn, type Scene, type Spec } from "../spec.ts";
import { type AdviceCase, type Bench, followAdvice, fullyGiven, openBench, printed, textOf } from "./bench.ts";
import { accessCases, networkCases } from "./cluster-cases.ts";
import { kernelCases, proxyCases } from "./node-cases.ts";

const COMMON: Pick<Spec, "suite" | "about" | "eachFamily" | "byItself" | "unfit"> = {
  suite: "faults",
  about: ["cli"],
  eachFamily: false,
  unfit: (shape) =>
    onlyIn(["iptables", "nftables"], "doctor's advice is followed in iptables and nftables mode")(shape) ??
    needs("attack", "agents have to be processes of this machine")(shape) ??
    lackingKubeProxy(shape),
};

const followed: Spec = {
  ...COMMON,
  name: "doctor: each advice is followed to the letter, alongside Fairlead, without a failed request",
  run: (scene, { mode }) => followAll(scene, { mode }),
};

const followedAlongsideKubeProxy: Spec = {
  ...COMMON,
  name: "doctor: each advice is followed to the letter, alongside kube-proxy, without a failed request",
  run: (scene, { mode }) => followAll(scene, { mode, kubeProxy: KUBE_PROXY }),
};

/** Nothing on a node that is well is to be changed. */
const healthy: Spec = {
  ...COMMON,
  name: "doctor: on a healthy node no advice has a command, in each mode, alongside Fairlead and kube-proxy",
  run: async (scene, { mode: own }) => {
    const swap = able(scene.nodes[1].agent.swap);
    scene.later(() => swap({ mode: own }));
    const seen = new Set<string>();
    const proxies = ["iptables", "nftables"].flatMap((mode) => [{ mode }, { mode, kubeProxy: KUBE_PROXY }]);
    for (const proxy of [...proxies, { mode: "userspace" }]) {
      await swap(proxy);
      for (const one of await saidOf(await openBench(scene, proxy))) seen.add(one.adviceName ?? "");
    }
    return { "advice on healthy nodes": [...seen].sort().join(", ") };
  },
};

export const doctorsAdvice: readonly Spec[] = [followed, followedAlongsideKubeProxy, healthy];

const OPTIONS = "what doctor is given or may see is another; nothing on a node changes";

/** The doctor's advices: the states of a node in which each is given, or why none is made here. */
const ADVICES: Readonly<Record<AdviceName, AdviceCase | readonly AdviceCase[] | string>> = {
  "look-as-root": OPTIONS,
  "install-iptables": OPTIONS,
  "install-ip": OPTIONS,
  "give-cidrs": OPTIONS,
  "give-kubeconfig": OPTIONS,
  "read-settings": OPTIONS,
  "reach-api-server": OPTIONS,
  "services-overlap": OPTIONS,
  "nodes-overlap": OPTIONS,
  "one-side": OPTIONS,
  "within-other": OPTIONS,
  "pods-bridge": "asks for a look at the node's own bridge; nothing on a node changes",
  "kernel-part": "what a kernel lacks is the machine's, and no test loads modules into it",
  "fast-path-kernel":
    "changes the configuration or the machine's kernel, and this ground's kernel need not have flowtables",
  "fast-path-failed": "no kernel here fails the test of its flowtables",
  "fast-path-test": "needs an agent without CAP_SYS_ADMIN on a kernel with flowtables, which this ground need not have",
  "fast-path-devices": "changes the configuration, and needs a kernel with flowtables, which this ground need not have",
  "fast-path-device": "changes the configuration, and needs a kernel with flowtables, which this ground need not have",
  "fast-path-other": "needs a kernel with flowtables, which this ground need not have",
  "calico-maps": "pinned maps are the machine's own file system, which no test touches",
  "kube-ovn-mode": "needs ipvs mode's rules; the multi-cni specs carry it in a guest that has them",
  "excluded-clients": "only ipvs mode cannot distinguish clients, and this ground's kernel need not have it",
  underlay:
    "begins with “nothing”, and is about learned CIDRs: the networks specs have one on the nodes' own addresses",
  "two-sources": "asks two networks' owners which of them is to give a range away; nothing on a node changes",
  "program-gateways": "needs the Gateway API and its controller; the command's test reads its objects",
  "leave-isolated": "needs kube-ovn or OVN-Kubernetes; the command's test follows it on their objects",
  "explain-services": "asks for a look at what Services ask for; nothing on a node changes",
  "kept-cidrs": "begins with “nothing”; the networks specs wait for the removal delay",
  "refused-objects": "what a kernel lacks is the machine's; the backend's tests have a kernel in memory that lacks it",
  "shared-dns-address": "needs ipvs mode's device, which this ground's kernel need not have",
  ...kernelCases,
  ...proxyCases,
  ...accessCases,
  ...networkCases,
};

const CASES = (Object.keys(ADVICES) as AdviceName[]).flatMap((advice) => {
  const cases = ADVICES[advice];
  return typeof cases === "string" ? [] : [cases].flat().map((one) => ({ advice, one }));
});

async function followAll(scene: Scene, proxy: NodeProxy): Promise<Figures> {
  const bench = await openBench(scene, proxy);
  await serve(bench);
  const stage = await openStage(scene);
  const fit = CASES.filter(
    ({ one: { modes, anyProxy } }) =>
      (modes?.includes(proxy.mode) ?? true) && (proxy.kubeProxy === undefined || anyProxy === true),
  );
  let [requests, failed] = [0, 0];
  for (const { advice, one } of fit) {
    const seen = await followAdvice(bench, advice, one, stage).catch((error: Error) => {
      throw new Error(`${advice}, ${one.what}: ${error.message}`, { cause: error });
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

/** However it is asked. */
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
