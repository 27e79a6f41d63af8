/** A node that dies, with Fairlead and with kube-proxy: which requests are lost, and for how long. */

import { setTimeout as sleep } from "node:timers/promises";
import { itemsOf, valueAt } from "@fairlead/base";
import type { ProbeResult } from "@fairlead/lab/peer/protocol";
import type { Client, ClusterNode, Pod } from "@fairlead/lab/provider/cluster";
import { PLAIN_TOOL } from "@fairlead/lab/support/machine";
import { now } from "@fairlead/lab/support/wait-until";
import { expectAnswers, type Target, until } from "../expect.ts";
import { lackingKubeProxy, withKubeProxy } from "../operator.ts";
import { type Figures, nearAndFar, type Scene, type Spec } from "../spec.ts";
import { PORTS } from "./stage.ts";

const NAME = "a node dies: requests to its endpoints are lost until they leave their slices, and none afterwards";

const common = { suite: "faults", eachFamily: false } as const;

export const nodeDies: readonly Spec[] = [
  { ...common, name: NAME, run: dies },
  { ...common, name: `${NAME}, with kube-proxy`, unfit: lackingKubeProxy, run: (scene) => withKubeProxy(scene, dies) },
];

/** A controller of nodes waits 50 s for a sign of life, and a busy machine longer. */
const NOTICED_MS = 300_000;

async function dies(scene: Scene): Promise<Figures> {
  const { near, far, caller, by } = await nearAndFar(scene);
  const { clusterIP: to } = await scene.service("web", { selector: { app: "web" }, ports: PORTS });
  await expectAnswers(caller, { to, port: 80 }, { by });
  const traffic = startAsking(caller, { to, port: 80 });
  scene.later(async () => void (await traffic.stop()));
  const died = now();
  await cutOff(scene, far.node);
  await scene.until("requests to the dead node to be lost", async () =>
    traffic.lost().length > 0 ? undefined : "none",
  );
  // On nodes that are namespaces no controller says so of the node's pods.
  if (scene.cluster.kubernetes === undefined) await far.setReady(false);
  await until(`${far.name} to leave its slices`, () => stillReady(scene, far), NOTICED_MS);
  const left = now();
  await expectAnswers(caller, { to, port: 80 }, { by: [near] });
  await traffic.stop();
  const lost = traffic.lost();
  const last = Math.max(...lost.map(askedAt));
  return {
    lost: String(lost.length),
    "from death to the slices": `${Math.round((left - died) / 100) / 10} s`,
    "from the slices to the last lost request": `${Math.max(0, Math.round(last - left))} ms`,
  };
}

function askedAt({ at, ms }: ProbeResult): number {
  return at - ms;
}

const BATCH = { count: 4, parallel: 4, timeoutMs: 1_000 } as const;
const PAUSE_MS = 20;

/** Requests on connections of their own, until they are stopped. */
export function startAsking(from: Client, target: Target) {
  const results: ProbeResult[] = [];
  const stopped = { value: false };
  const lane = async () => {
    while (!stopped.value) {
      results.push(...(await from.send({ protocol: "TCP", ...target, ...BATCH })));
      await sleep(PAUSE_MS);
    }
  };
  // A request that is lost does not keep the others waiting.
  const lanes = Promise.all(Array.from({ length: 4 }, lane));
  lanes.catch(() => {});
  return {
    lost: () => results.filter(({ kind }) => kind === "lost"),
    stop: async () => {
      stopped.value = true;
      await lanes;
    },
  };
}

/** Nothing comes from the node or to it, until the spec is over. */
async function cutOff({ cluster, later }: Scene, { run }: ClusterNode): Promise<void> {
  const rules = (verb: "-I" | "-D") =>
    cluster.families.flatMap((family) =>
      ["PREROUTING", "OUTPUT"].map((chain) => run([PLAIN_TOOL[family], "-w", "-t", "raw", verb, chain, "-j", "DROP"])),
    );
  later(async () => void (await Promise.all(rules("-D"))));
  await Promise.all(rules("-I"));
}

async function stillReady({ cluster, namespace, family }: Scene, { addresses }: Pod): Promise<string | undefined> {
  const list = await cluster.api.get(`/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`);
  const endpoints = itemsOf(valueAt(list, "items")).flatMap((slice) => itemsOf(valueAt(slice, "endpoints")));
  const own = endpoints.filter((one) => itemsOf(valueAt(one, "addresses")).includes(addresses[family]));
  return own.some((one) => valueAt(one, "conditions", "ready") !== false) ? "it is ready" : undefined;
}
