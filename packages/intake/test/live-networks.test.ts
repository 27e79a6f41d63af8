import { settled, VirtualClock } from "@fairlead/base/testing";
import { ClusterState, decodeEndpointSlice, decodeService, type ServiceKey } from "@fairlead/core";
import { type NetworksDecision, NOTHING_KNOWN, networkSource } from "@fairlead/networks";
import { endpointSlice, service } from "@fairlead/testkit";
import { expect, test } from "vitest";
import { LiveNetworks } from "../src/index.ts";

const WEB: ServiceKey = "default/web";

/** A decision that waits for the test after each of its steps. */
function stepped() {
  const clock = new VirtualClock();
  const state = new ClusterState();
  const waiting: (() => void)[] = [];
  const networks = new LiveNetworks({
    setup: {
      settings: {
        written: { own: [], excluded: [] },
        sources: { own: [], excluded: [networkSource("kube-ovn-subnets")] },
        filter: { mixedServices: "own-endpoints", excludedFrontends: "all", ownershipAnnotation: true },
        debounceMs: 1_000,
        removalDelayMs: 600_000,
        consentNamespace: "kube-system",
      },
      known: NOTHING_KNOWN,
    },
    state,
    clock,
    onProblem: () => {},
    onDecided: () => {},
    keep: () => {},
    slicing: { budget: 0, turn: () => new Promise((resolve) => void waiting.push(resolve)) },
  });
  const move = (address: string) => {
    const slice = endpointSlice("web-1", {
      service: "web",
      family: "IPv4",
      ports: [{ port: 80 }],
      endpoints: [{ address }],
    });
    const { object } = decodeEndpointSlice(slice);
    if (object !== undefined) state.upsertSlice(object);
    return state.takeDirty().services;
  };
  const step = async () => {
    waiting.shift()?.();
    await settled();
    return waiting.length > 0;
  };
  return { clock, state, networks, move, step, waiting };
}

test("a service whose endpoints move while a decision is made is planned again under it", async () => {
  const { clock, state, networks, move, step } = stepped();
  const { object } = decodeService(service("web", { clusterIPs: ["10.96.0.10"], ports: [{ port: 80 }] }));
  if (object !== undefined) state.upsertService(object);
  move("10.144.0.5");
  const decisions: NetworksDecision[] = [];
  networks.start({ onFirst: () => {}, onChange: (decision) => void decisions.push(decision) });
  const [subnets, vpcs] = networks.subscriptions;
  const key = "/ovn-default" as const;
  subnets?.onChange({
    type: "upsert",
    key,
    object: { metadata: { name: "ovn-default" }, spec: { cidrBlock: "10.16.0.0/16" } },
  });
  subnets?.onState?.("listed");
  vpcs?.onState?.("absent");
  networks.subscriptions.find(({ resource }) => resource.plural === "configmaps")?.onState?.("listed");
  networks.synced("services");
  networks.synced("endpointSlices");
  await clock.advance(0);
  await settled();
  networks.takeConcerned();
  // The index is made and the CIDR looked at; then a sync plans the endpoint's move by what was in force before.
  for (let steps = 0; steps < 3; steps++) expect(await step()).toBe(true);
  networks.syncBegins();
  const seen = networks.see(move("10.16.0.5"));
  while (await step());
  await seen;
  expect(decisions.map(({ touched }) => [...touched])).toEqual([[]]);
  expect(networks.takeConcerned()).toEqual(new Set([WEB]));
});
