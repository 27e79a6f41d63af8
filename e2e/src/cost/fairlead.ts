import { createNftablesBackend, type NftablesPort, nftablesSemantics } from "@fairlead/backend-nftables";
import type { ModeSemantics } from "@fairlead/core";
import type { GoldenNode, RawObject } from "@fairlead/testkit";
import { goldenNode, goldenPlannerOptions, TestCluster } from "@fairlead/testkit";
import { NODE } from "./network.ts";
import { COUNTED, countedObjects } from "./objects.ts";
import type { Subject } from "./subject.ts";

/** The devices of the fast path; undefined: without it. */
export type FastPath = readonly string[] | undefined;

/** The table as the agent's backend writes it: the transactions of its full sync, and that of the devices. */
export async function fairleadTable(
  name: string,
  file: string,
  objects: readonly RawObject[],
  fastPath: FastPath,
  node?: GoldenNode,
): Promise<Subject> {
  const { transactions } = await synced(clusterOn(objects, nftablesSemantics, node), fastPath);
  return subjectOf(name, file, transactions);
}

/** The same, with the transactions of a change of one endpoint, `FILE-there`, and of its way back, `FILE-back`. */
export async function fairleadChange(
  name: string,
  file: string,
  objects: readonly RawObject[],
  fastPath: FastPath,
): Promise<Subject> {
  const cluster = clusterOn(objects);
  const { backend, transactions } = await synced(cluster, fastPath);
  const subject = subjectOf(name, file, transactions);
  const change = async (endpoints: readonly string[]) => {
    transactions.length = 0;
    cluster.put(...countedObjects(endpoints));
    const change = cluster.replan().changes.get("IPv4");
    if (change !== undefined) await backend.apply(cluster.plan("IPv4"), change);
    const [only, more] = transactions;
    if (only === undefined || more !== undefined) throw new Error(`a change is ${transactions.length} transactions`);
    return only;
  };
  // The one in the last slot, so that the way back leads to where everything was.
  const there = await change([...COUNTED.endpoints.slice(0, -1), "10.144.201.1"]);
  const back = await change(COUNTED.endpoints);
  return { ...subject, files: { ...subject.files, [`${file}-there`]: there, [`${file}-back`]: back } };
}

/** What an agent plans of these objects in a mode. */
export function clusterOn(
  objects: readonly RawObject[],
  semantics: ModeSemantics = nftablesSemantics,
  node: GoldenNode = goldenNode(false),
): TestCluster {
  const [address = ""] = node.addresses;
  const cluster = new TestCluster(
    goldenPlannerOptions(node, semantics, {
      nodePortAddresses: { IPv4: { kind: "list", addresses: [address] } },
      serviceCIDRs: { IPv4: node.serviceCIDRs },
    }),
  );
  cluster.put(...objects);
  cluster.replan();
  return cluster;
}

async function synced(cluster: TestCluster, fastPath: FastPath) {
  const transactions: Uint8Array[] = [];
  const devices = new Map((fastPath ?? []).map((device, at) => [device, at + 1]));
  const backend = createNftablesBackend(recordingPort(transactions), {
    family: "IPv4",
    fastPath: fastPath !== undefined,
    devices: () => devices,
  });
  await backend.sync(cluster.plan("IPv4"));
  return { backend, transactions };
}

/** A kernel that takes everything and has nothing. */
function recordingPort(transactions: Uint8Array[]): NftablesPort {
  return {
    commit: async (batch) => void transactions.push(batch.finish()),
    roomFor: (wanted) => wanted,
    generation: async () => 0,
    table: async () => undefined,
    sets: async () => new Map(),
  };
}

function subjectOf(name: string, file: string, transactions: readonly Uint8Array[]): Subject {
  const files = Object.fromEntries(transactions.map((bytes, at) => [`${file}-${at}`, bytes]));
  const paths = Object.keys(files).map((own) => `/guest/${own}`);
  return { name, files, load: [`batch load ${NODE} ${paths.join(" ")}`] };
}
