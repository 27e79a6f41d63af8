import { each } from "../../every-node.ts";
import { expectAnswers } from "../../expect.ts";
import { excludedNetwork, needsOwnLoadBalancer } from "../../multi-cni/networks.ts";
import { able, needs, notIn, onlyIPv4 } from "../../needs.ts";
import type { Scene } from "../../scene.ts";
import type { Figures, Spec } from "../../spec.ts";
import { type Cell, openTable } from "./answer-table.ts";
import { learnByFile } from "./configuration.ts";

const { FAIRLEAD_KUBE_PROXY: kubeProxy = "" } = process.env;
const onlyOthers = notIn(["ipvs"], "ipvs mode cannot distinguish the clients of an address");
const REQUESTS = { count: 16, parallel: 8, timeoutMs: 3_000 } as const;

/** `multiCNI` as the recipe for Calico and kube-ovn has it. */
function recipe({ cluster, network }: Scene): unknown {
  const within = Object.values(excludedNetwork(cluster).podCIDRs);
  return {
    clusterCIDRsFrom: [{ source: "calico-ippools", within: Object.values(network.podCIDRs) }],
    excludeCIDRsFrom: [{ source: "kube-ovn-subnets", within }],
    excludedFrontends: "excluded-clients",
    serviceRules: [{ annotation: "ovn.kubernetes.io/vpc", notIn: [{ defaultVPC: true }], ownership: "foreign" }],
  };
}

/** What comes of a round of requests, whatever it is. */
async function answerOf({ from, target, service }: Cell): Promise<string> {
  const results = await from.send({ protocol: "TCP", ...target, ...REQUESTS });
  const servers = new Set(results.map((result) => (result.kind === "answer" ? result.server : "")));
  const [failed, ...more] = results.filter(({ kind }) => kind !== "answer");
  if (failed !== undefined) return `${1 + more.length} of ${results.length} failed (${failed.kind})`;
  return answeredBy(service, servers.size);
}

/** Of a mixed service the one that answers alone is ours. */
function answeredBy(service: Cell["service"], endpoints: number): string {
  if (service !== "mixed") return "answered";
  return endpoints === 1 ? "by our endpoint" : "by both endpoints";
}

/** A line for each client and address, with the services in the same order. */
function lines(cells: readonly Cell[], answers: ReadonlyMap<Cell, string>): Figures {
  const rows = Object.entries(Object.groupBy(cells, ({ row }) => row));
  const text = (cell: Cell) => `${cell.service} ${answers.get(cell) ?? "not asked"}`;
  return Object.fromEntries(rows.map(([row, found = []]) => [row, found.map(text).join("; ")]));
}

function fairleadLines(cells: readonly Cell[]): Figures {
  return lines(cells, new Map(cells.map((cell) => [cell, answeredBy(cell.service, cell.by.length)])));
}

/** The same of the real kube-proxy on the same nodes. */
async function askKubeProxy(scene: Scene, cells: readonly Cell[]): Promise<Figures> {
  const { mode, networks } = scene.cluster;
  // It refuses several clusterCIDRs of a family.
  if (kubeProxy === "" || networks.filter(({ excluded }) => !excluded).length > 1) return {};
  scene.later(() => each(scene, ({ agent }) => able(agent.swap)({ mode })));
  await each(scene, ({ agent }) => able(agent.swap)({ mode, kubeProxy }));
  const answers = new Map<Cell, string>();
  for (const cell of cells) answers.set(cell, await answerOf(cell));
  const named = Object.entries(lines(cells, answers)).map(([row, text]) => [`kube-proxy: ${row}`, text] as const);
  return Object.fromEntries(named);
}

export const everyAnswer: Spec = {
  name: "the recipe for two networks: every client is answered by every service at every address",
  suite: "networks",
  about: ["endpoint-filter", "backend-iptables", "backend-nftables", "backend-userspace"],
  eachFamily: false,
  alone: true,
  unfit: (shape) =>
    onlyOthers(shape) ?? needs("learn")(shape) ?? needsOwnLoadBalancer(shape) ?? onlyIPv4("its CIDRs are IPv4")(shape),
  run: async (scene) => {
    await learnByFile(scene, recipe(scene));
    const cells = await openTable(scene);
    for (const { from, target, by } of cells) await expectAnswers(from, target, { by });
    return { ...fairleadLines(cells), ...(await askKubeProxy(scene, cells)) };
  },
};
