/** Agents that end, tables that are damaged, and TCP that is reset. */

import { fileURLToPath } from "node:url";
import { IP_FAMILIES, socketText } from "@fairlead/base";
import { PATIENCE_MS } from "@fairlead/base/testing";
import type { IPFamily } from "@fairlead/core";
import { ipvsFaults } from "@fairlead/lab/faults";
import { type Lab, namespaceOf } from "@fairlead/lab/plain/lab";
import { vanish, whoAnswers } from "@fairlead/lab/plain/requests";
import { startScript } from "@fairlead/lab/support/script";
import {
  clientA,
  clusterObjects,
  type Host,
  NODE_A,
  outside,
  ovnA,
  type RawObject,
  webA1,
  webB1,
  workload,
} from "@fairlead/testkit";
import { type ServedNode, type Spec, serveNode, unequal } from "./suite.ts";

const web = workload(11, { endpoints: [webA1], nodePort: true });

const served = async (lab: Lab) =>
  (await whoAnswers(lab, clientA, web.clusterIP.IPv4)) === webA1.name &&
  (await whoAnswers(lab, outside, web.clusterIP.IPv4)) === webA1.name &&
  (await whoAnswers(lab, outside, NODE_A.addresses.IPv4, web.nodePort)) === webA1.name;
const unserved = async (lab: Lab) => !(await served(lab));

const foreign = workload(14, { endpoints: [ovnA] });

const target = {
  address: web.clusterIP.IPv4,
  // Of another network's service.
  other: foreign.clusterIP.IPv4,
};

interface Fault {
  readonly name: string;
  /** What an operator does by hand on the node, a script for sh. */
  readonly byHand: string;
  /** Whether the fault shows; default: a client is not served. */
  readonly broken?: (lab: Lab) => Promise<boolean>;
}

const left = async (lab: Lab) => (await whoAnswers(lab, clientA, foreign.clusterIP.IPv4)) === "sink";

const faults: readonly Fault[] = [
  { name: "ipvsadm --clear", byHand: ipvsFaults.serversCleared() },
  { name: "kube-ipvs0 deleted", byHand: ipvsFaults.deviceDeleted() },
  { name: "an address of kube-ipvs0 deleted", byHand: ipvsFaults.addressDeleted(target) },
  {
    name: "sets destroyed, with the rules that ask them",
    byHand: ipvsFaults.setsDestroyed(),
    // The lab's routes bring answers back unmasqueraded as well.
    broken: async (lab) => (await lab.runner("node-a").run(["ipset", "list", "-name"])).stdout === "",
  },
  { name: "a set emptied", byHand: ipvsFaults.setEmptied() },
  {
    name: "the address of another network's service put on kube-ipvs0",
    byHand: ipvsFaults.addressAdded(target),
    broken: async (lab) => !(await left(lab)),
  },
];

const objects: readonly RawObject[] = [...clusterObjects, ...web.objects, ...foreign.objects];

/** Done by hand on a node that serves: it shows, and the next look repairs it. */
export const faultSpecs: readonly Spec[] = faults.map(({ name, byHand, broken = unserved }) => ({
  name: `ipvs faults: ${name}`,
  run: async (lab) => {
    const node = await serveNode(lab, objects);
    try {
      return await afterFault(lab, node, byHand, broken);
    } finally {
      await node.cleanup();
    }
  },
}));

/** Connections to a pod that vanishes end where that is asked for, those of all clients. */
export const resetSpecs: readonly Spec[] = IP_FAMILIES.flatMap((family) => [
  resetSpec(family, "with another endpoint", [webB1]),
  resetSpec(family, "without another endpoint", []),
]);

async function afterFault(
  lab: Lab,
  node: ServedNode,
  byHand: string,
  broken: (lab: Lab) => Promise<boolean>,
): Promise<readonly string[]> {
  const problems: string[] = [];
  const demand = (what: string, met: boolean) => {
    if (!met) problems.push(what);
  };
  demand("served before", await served(lab));
  demand("left before", await left(lab));
  demand("nothing to repair before", !(await node.repair()));
  await lab.runner("node-a").run(["sh", "-ec", byHand]);
  demand("the fault shows", await broken(lab));
  demand("the fault is seen", await node.repair());
  demand("served after", await served(lab));
  demand("left after", await left(lab));
  demand("nothing to repair after", !(await node.repair()));
  return problems;
}

const resetWeb = (...endpoints: readonly Host[]) =>
  workload(14, { endpoints, families: IP_FAMILIES, nodePort: true, external: true });
const resetObjects = (...endpoints: readonly Host[]) => [...clusterObjects, ...resetWeb(...endpoints).objects];

function resetSpec(family: IPFamily, name: string, left: readonly Host[]): Spec {
  return {
    name: `ipvs reset: clients of a pod that vanished, ${name}, ${family}`,
    run: async (lab) => {
      const node = await serveNode(lab, resetObjects(webA1), { family, resetStaleTCP: true });
      try {
        const transfers = await connect(lab, family);
        await using _ = await vanish(lab, webA1);
        await node.change(resetObjects(...left));
        const destinations = await node.destinations(resetWeb().clusterIP[family]);
        const ends = await Promise.all(transfers.map(({ end }) => end()));
        return [
          ...unequal(
            "destinations",
            destinations,
            left.map((host) => `${socketText(host.addresses[family], 8080)} 1`),
          ),
          ...ends.flatMap(({ error }, at) => unequal(transfers[at]?.name ?? "", error, "ECONNRESET")),
        ];
      } finally {
        await node.cleanup();
      }
    },
  };
}

async function connect(lab: Lab, family: IPFamily) {
  const { clusterIP, externalIP, nodePort } = resetWeb();
  const ways = [
    { name: "a pod", from: clientA, to: clusterIP[family], port: 80 },
    { name: "the node", from: NODE_A, to: clusterIP[family], port: 80 },
    { name: "outside by external IP", from: outside, to: externalIP[family], port: 80 },
    { name: "outside by node port", from: outside, to: NODE_A.addresses[family], port: nodePort },
  ];
  return Promise.all(
    ways.map(async ({ name, from, to, port }) => ({ name, end: await beginTransfer(lab, from, to, port) })),
  );
}

const tcp = (...endpoints: readonly Host[]) => workload(12, { endpoints });
const sticky = (...endpoints: readonly Host[]) => workload(101, { endpoints, affinitySeconds: 600 });
const udp = (...endpoints: readonly Host[]) => workload(13, { endpoints, protocol: "UDP" });

const weight = (host: Host, value: number) => `${socketText(host.addresses.IPv4, 8080)} ${value}`;

/** An endpoint that goes away: what it has goes on, what is new goes elsewhere. */
export const drainSpecs: readonly Spec[] = [
  drainSpec("a long TCP transfer goes on, new connections go elsewhere", tcp, async () => {}),
  drainSpec("session affinity holds no client on what drains", sticky, async () => {}),
  drainSpec("a restart of the agent in between changes nothing", tcp, (node) => node.restart()),
  {
    name: "ipvs drain: UDP moves at once",
    run: async (lab) => {
      const { clusterIP } = udp(webA1);
      const node = await serveNode(lab, [...clusterObjects, ...udp(webA1).objects]);
      try {
        const before = await askUdp(lab, clusterIP.IPv4);
        await node.change([...clusterObjects, ...udp(webB1).objects]);
        return [
          ...unequal("before", before, [webA1.name]),
          ...unequal("destinations", await node.destinations(clusterIP.IPv4), [weight(webB1, 1)]),
          ...unequal("after", await askUdp(lab, clusterIP.IPv4), [webB1.name]),
        ];
      } finally {
        await node.cleanup();
      }
    },
  },
];

interface TransferEnd {
  readonly answers: number;
  readonly servers: readonly string[];
  /** `none`, or the code of what cut the connection: `ECONNRESET`. */
  readonly error: string;
}

const SCRIPT = fileURLToPath(new URL("transfer-main.ts", import.meta.url));

/** @returns what ends it */
async function beginTransfer(lab: Lab, from: Host, to: string, port: number): Promise<() => Promise<TransferEnd>> {
  const script = await startScript(lab.namespace(namespaceOf(from)), SCRIPT, [to, String(port)]);
  return async () => {
    const end = await script.ask("end");
    await script.stop();
    return JSON.parse(end);
  };
}

type Kind = typeof tcp;

function drainSpec(name: string, kind: Kind, between: (node: ServedNode) => Promise<void>): Spec {
  return {
    name: `ipvs drain: ${name}`,
    run: async (lab) => {
      const node = await serveNode(lab, [...clusterObjects, ...kind(webA1).objects]);
      try {
        return await drain(lab, node, kind, between);
      } finally {
        await node.cleanup();
      }
    },
  };
}

async function drain(
  lab: Lab,
  node: ServedNode,
  kind: Kind,
  between: (node: ServedNode) => Promise<void>,
): Promise<readonly string[]> {
  const { clusterIP } = kind(webA1);
  const ask = () => whoAnswers(lab, clientA, clusterIP.IPv4);
  const end = await beginTransfer(lab, clientA, clusterIP.IPv4, 80);
  await node.change([...clusterObjects, ...kind(webB1).objects]);
  await between(node);
  const draining = await node.destinations(clusterIP.IPv4);
  const asked = [await ask(), await ask(), await ask()];
  await node.minute();
  const kept = await node.destinations(clusterIP.IPv4);
  const { servers, error, answers } = await end();
  return [
    ...unequal("destinations while it drains", draining, [weight(webA1, 0), weight(webB1, 1)].sort()),
    ...unequal(
      "new connections",
      asked,
      Array.from(asked, () => webB1.name),
    ),
    ...unequal("destinations after a minute of transfer", kept, draining),
    ...unequal("the transfer's servers", servers, [webA1.name]),
    ...unequal("the transfer's error", error, "none"),
    ...(answers > 3 ? [] : [`the transfer had only ${answers} answers`]),
  ];
}

async function askUdp(lab: Lab, to: string): Promise<readonly string[]> {
  const probe = { protocol: "UDP", to, port: 80, count: 4, parallel: 1, timeoutMs: PATIENCE_MS } as const;
  const results = await lab.peer(clientA).send(probe);
  return [...new Set(results.map((result) => (result.kind === "answer" ? result.server : result.kind)))];
}
