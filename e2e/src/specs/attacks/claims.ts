import { service } from "@fairlead/testkit";
import type { Spec } from "../spec.ts";
import { underAttackFromManifests } from "./from-manifests.ts";

const SERVICES = 12_000;
const MOST_LOG_LINES = 1_000;
const SERVED_MS = 300_000;

function* claimants(address: string) {
  yield '{"apiVersion":"v1","kind":"List","items":[';
  for (let at = 0; at < SERVICES; at++) {
    const clusterIPs = [`10.100.${at >> 8}.${at & 255}`];
    const object = service(`claim-${at}`, {
      namespace: "claims",
      clusterIPs,
      externalIPs: [address],
      ports: [{ port: 80 }],
    });
    yield `${at === 0 ? "" : ","}${JSON.stringify(object)}`;
  }
  yield "]}";
}

export const claims: Spec = underAttackFromManifests({
  name: `attack: ${SERVICES.toLocaleString("en")} services claim one external address`,
  unfit: (_, family) => (family === "IPv4" ? undefined : "claims an IPv4 address"),
  act: async (attacked, mirror) => {
    const { scene, node } = attacked;
    const linesBefore = (await node.agent.log()).split("\n").length;
    await mirror.add("claims.json", claimants(scene.cluster.gateAddress(node, scene.family)));
    const meanwhile = await attacked.change("meanwhile", SERVED_MS);
    const lines = (await node.agent.log()).split("\n").length - linesBefore;
    if (lines > MOST_LOG_LINES) throw new Error(`wanted ${MOST_LOG_LINES} lines in the log at most; ${lines} came`);
    await mirror.drop("claims.json");
    return { meanwhile, "log lines": String(lines) };
  },
});
