/**
 * Services that all want one external IP, each taking it from the one before: how the time of a plan grows, and that of
 * their going again.
 *
 *   pnpm exec node --conditions=@fairlead/source bench/rivals.ts
 */
import { toEnd } from "@fairlead/base";
import { ClusterState, Planner, type PlannerOptions, type Service } from "../src/index.ts";

const OPTIONS: PlannerOptions = {
  nodeName: "node-a",
  families: ["IPv4"],
  nodeIPs: {},
  detectors: {},
  nodePortAddresses: {},
  masqueradeAll: false,
  semantics: { localSourcesShortCut: true, localWithoutEndpoints: "drop", withoutEndpoints: "reject" },
};

for (const count of [3_000, 6_000, 12_000, 24_000]) {
  const state = new ClusterState();
  const planner = new Planner(OPTIONS);
  for (let i = count; i > 0; i--) state.upsertService(rival(i));
  const come = plan(planner, state);
  for (let i = 1; i <= count; i++) state.deleteService("default", nameOf(i));
  const go = plan(planner, state);
  console.log(`${count} services: ${come.took} ms, ${come.problems} problems; gone again ${go.took} ms`);
}

function plan(planner: Planner, state: ClusterState): { took: number; problems: number } {
  const start = performance.now();
  const { problems } = toEnd(planner.replan(state, state.takeDirty().services, { get: () => undefined }));
  return { took: Math.round(performance.now() - start), problems: problems.length };
}

function nameOf(number: number): string {
  return `rival-${String(number).padStart(6, "0")}`;
}

function rival(number: number): Service {
  return {
    namespace: "default",
    name: nameOf(number),
    clusterIPs: [`10.96.${number >> 8}.${number & 0xff}`],
    ports: [{ name: "", protocol: "TCP", port: 80 }],
    externalIPs: ["198.51.100.1"],
    loadBalancerIPs: [],
    loadBalancerSourceRanges: [],
    internalTrafficPolicy: "Cluster",
    externalTrafficPolicy: "Cluster",
    annotations: {},
  };
}
