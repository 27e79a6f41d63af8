import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { socketText } from "@fairlead/base";
import { describe, expect, test } from "vitest";
import {
  ClusterState,
  decodeEndpointSlice,
  decodeService,
  type Frontend,
  type FrontendKind,
  type IPFamily,
  type PlanEndpoint,
  Planner,
  type ServicePortGroup,
} from "../src/index.ts";
import { OPTIONS, replan } from "./objects.ts";

/** What upstream says of a service port; see fixtures/upstream. */
interface UpstreamPort {
  readonly name: string;
  readonly clusterIP: string;
  readonly cluster: readonly string[];
  readonly local: readonly string[];
  readonly serving: readonly string[];
  readonly count: number;
  readonly any: boolean;
  readonly externalIPs: readonly string[];
  readonly loadBalancerIPs: readonly string[];
  readonly ranges: readonly string[];
  readonly affinity: number;
  readonly healthCheck: number;
  readonly internalLocal: boolean;
  readonly externalLocal: boolean;
}

interface Recording {
  readonly service: unknown;
  readonly slices: readonly unknown[];
  readonly upstream: Readonly<
    Record<IPFamily, { readonly ports: readonly UpstreamPort[]; readonly localReady: number }>
  >;
}

const file = resolve(import.meta.dirname, "fixtures/upstream/answers.jsonl");
const recordings = readFileSync(file, "utf8")
  .trim()
  .split("\n")
  .map((line): Recording => JSON.parse(line));

describe.each(["IPv4", "IPv6"] as const)(
  "%s: what kube-proxy's own service model makes of the same objects",
  (family) => {
    test.each(recordings.map((recording, i) => [i + 1, recording] as const))("recording %i", (_, recording) => {
      const plan = planOf(recording).plan(family);
      const { ports, localReady } = recording.upstream[family];
      expect([...plan.groups.keys()].sort()).toEqual(ports.map((port) => port.name).sort());
      for (const port of ports) {
        const group = plan.groups.get(port.name);
        if (group !== undefined) expect(reported(group)).toEqual(expected(port, group));
        const check = plan.healthChecks.get("default/web");
        if (port.healthCheck > 0) expect(check).toMatchObject({ port: port.healthCheck, localEndpoints: localReady });
        else expect(check).toBeUndefined();
      }
    });
  },
);

test("the recordings are about something", () => {
  const ports = recordings.flatMap(({ upstream }) => [...upstream.IPv4.ports, ...upstream.IPv6.ports]);
  expect(ports.filter((port) => port.local.length > 0).length).toBeGreaterThan(20);
  expect(ports.filter((port) => port.cluster.length < port.count).length).toBeGreaterThan(20);
  expect(ports.filter((port) => port.healthCheck > 0).length).toBeGreaterThan(5);
});

function planOf({ service, slices }: Recording): Planner {
  const state = new ClusterState();
  const { object } = decodeService(service);
  if (object !== undefined) state.upsertService(object);
  for (const slice of slices) {
    const decoded = decodeEndpointSlice(slice);
    if (decoded.object !== undefined) state.upsertSlice(decoded.object);
  }
  const planner = new Planner(OPTIONS);
  replan(planner, state);
  return planner;
}

function reported(group: ServicePortGroup): Omit<UpstreamPort, "name"> {
  const ofKind = (kind: FrontendKind) => group.frontends.filter((frontend) => frontend.kind === kind);
  const addresses = (kind: FrontendKind) => ofKind(kind).map((frontend) => frontend.address ?? "");
  return {
    clusterIP: addresses("cluster-ip").join(),
    externalIPs: addresses("external-ip"),
    loadBalancerIPs: addresses("load-balancer"),
    ranges: ofKind("load-balancer")[0]?.gate?.ranges ?? [],
    cluster: group.cluster.map(text),
    local: group.local.map(text),
    serving: group.serving.map(text),
    count: group.endpointCount,
    any: group.frontends.every((frontend) => frontend.treatments.outside.verdict !== "reject"),
    affinity: group.affinitySeconds ?? 0,
    healthCheck: group.healthCheckPort ?? 0,
    internalLocal: isLocal(ofKind("cluster-ip")),
    externalLocal: isLocal(group.frontends.filter((frontend) => frontend.kind !== "cluster-ip")),
  };
}

function isLocal(frontends: readonly Frontend[]): boolean {
  return frontends.some((frontend) => frontend.policy === "Local");
}

/** Upstream's answer as far as it shows in a plan: what belongs to no frontend has nowhere to show. */
function expected({ name: _, ...port }: UpstreamPort, group: ServicePortGroup): Omit<UpstreamPort, "name"> {
  const isExternal = group.frontends.some((frontend) => frontend.kind !== "cluster-ip");
  return {
    ...port,
    ranges: port.loadBalancerIPs.length > 0 ? port.ranges : [],
    externalLocal: port.externalLocal && isExternal,
  };
}

function text({ address, port }: PlanEndpoint): string {
  return socketText(address, port);
}
