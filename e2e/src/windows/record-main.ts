/**
 * Records what kube-proxy makes of the cases, and what its syncs cost: `unshare -n node record-main.ts FOLDER
 * KUBE_PROXY_EXE OUTPUT [CASE…|cost]`. FOLDER is Wine's; the program is in it.
 */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createWine, whyNoWine } from "@fairlead/lab/wine/wine";
import { COST_SERVICES, costObjects, WINDOWS_CASES, type WindowsCase } from "@fairlead/testkit/windows";
import { setUpNetwork } from "./ground.ts";
import { PlayedNode, putNode } from "./play.ts";
import { kubeProxy } from "./proxies.ts";

/** What kube-proxy asks once in each sync, as long as it deletes nothing. */
const BEGINS = "HcnEnumerateEndpoints";

const [, , folder = "", program = "", output = "", ...names] = process.argv;
await setUpNetwork();
const missing = await whyNoWine();
if (missing !== undefined) throw new Error(missing);
const wine = await createWine(folder);
try {
  for (const of of WINDOWS_CASES) {
    if (names.length > 0 && !names.includes(of.name)) continue;
    await record(of);
  }
  if (names.length === 0 || names.includes("cost")) await recordCost();
} finally {
  await wine.stop();
}
process.exit(0);

async function record(of: WindowsCase): Promise<void> {
  const node = new PlayedNode(of, kubeProxy(program), wine, folder);
  const steps = [];
  for await (const step of node.play(of.steps)) steps.push(step);
  await writeFile(join(output, `${of.name}.json`), `${JSON.stringify({ steps }, null, 1)}\n`);
  console.log(`${of.name}: ${steps.length} steps`);
}

/** Calls to HCN of one sync each: the first one, that of an endpoint more, and one in which a port changes. */
async function recordCost(): Promise<void> {
  const [of] = WINDOWS_CASES;
  if (of === undefined) throw new Error("there are no cases");
  const { all, change } = costObjects();
  const node = new PlayedNode(of, kubeProxy(program), wine, folder);
  putNode(node.server);
  node.server.put(all);
  await node.start(await node.server.start());
  const syncs = async () => {
    const { calls } = await node.settled();
    const begins = calls.flatMap((call, at) => (call === BEGINS ? [at] : []));
    return begins.map((at, index) => calls.slice(at, begins[index + 1]));
  };
  const first = await syncs();
  const start = Math.max(...first.map(({ length }) => length));
  node.server.put(change);
  const later = (await syncs()).slice(first.length);
  const changed = later.find((calls) => calls.includes("HcnCreateEndpoint"))?.length ?? 0;
  await node.kill();
  await node.server.stop();
  const cost = { services: COST_SERVICES, start, change: changed, sync: later.at(-1)?.length ?? 0 };
  await writeFile(join(output, "cost.json"), `${JSON.stringify(cost, null, 1)}\n`);
  console.log(`cost: ${JSON.stringify(cost)}`);
}
