import { IP_FAMILIES, socketText } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import type { Lab } from "@fairlead/lab/plain/lab";
import { vanish } from "@fairlead/lab/plain/requests";
import { clientA, clusterObjects, type Host, NODE_A, outside, webA1, webB1, workload } from "@fairlead/testkit";
import { serveNode } from "./served.ts";
import { type Spec, unequal } from "./suite.ts";
import { beginTransfer } from "./transfer.ts";

const web = (...endpoints: readonly Host[]) =>
  workload(14, { endpoints, families: IP_FAMILIES, nodePort: true, external: true });
const objects = (...endpoints: readonly Host[]) => [...clusterObjects, ...web(...endpoints).objects];

/** Connections to a pod that vanishes end where that is asked for, whoever has them. */
export const resetSpecs: readonly Spec[] = IP_FAMILIES.flatMap((family) => [
  resetSpec(family, "with another endpoint", [webB1]),
  resetSpec(family, "without another endpoint", []),
]);

function resetSpec(family: IPFamily, name: string, left: readonly Host[]): Spec {
  return {
    name: `ipvs reset: clients of a pod that vanished, ${name}, ${family}`,
    run: async (lab) => {
      const node = await serveNode(lab, objects(webA1), { family, resetStaleTCP: true });
      try {
        const transfers = await connect(lab, family);
        await using _ = await vanish(lab, webA1);
        await node.change(objects(...left));
        const destinations = await node.destinations(web().clusterIP[family]);
        const ends = await Promise.all(transfers.map(({ transfer }) => transfer.end()));
        return [
          ...unequal(
            "destinations",
            destinations,
            left.map((host) => `${socketText(host.addresses[family], 8080)} 1`),
          ),
          ...ends.flatMap(({ error }, at) => unequal(transfers[at]?.name ?? "", error, "read ECONNRESET")),
        ];
      } finally {
        await node.cleanup();
      }
    },
  };
}

async function connect(lab: Lab, family: IPFamily) {
  const { clusterIP, externalIP, nodePort } = web();
  const ways = [
    { name: "a pod", from: clientA, to: clusterIP[family], port: 80 },
    { name: "the node", from: NODE_A, to: clusterIP[family], port: 80 },
    { name: "outside by external IP", from: outside, to: externalIP[family], port: 80 },
    { name: "outside by node port", from: outside, to: NODE_A.addresses[family], port: nodePort },
  ];
  return Promise.all(
    ways.map(async ({ name, from, to, port }) => ({ name, transfer: await beginTransfer(lab, from, to, port) })),
  );
}
