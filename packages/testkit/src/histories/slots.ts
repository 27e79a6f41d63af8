import type { TrafficPolicy } from "@fairlead/core";
import fc from "fast-check";
import { endpointSlice } from "../objects/endpoint-slice.ts";
import type { RawObject } from "../objects/raw.ts";
import { service } from "../objects/service.ts";

/** Services that come and go in the properties: what each slot can hold. */

export interface SlotState {
  readonly type: "ClusterIP" | "NodePort" | "LoadBalancer";
  readonly protocol: "TCP" | "UDP";
  readonly ports: 1 | 2;
  readonly internal: TrafficPolicy;
  readonly external: TrafficPolicy;
  readonly externalIP: boolean;
  readonly ranges: boolean;
  readonly affinity: boolean;
  /** Which of the four endpoints there are; the first two run here. */
  readonly endpoints: readonly ("ready" | "terminating" | "none")[];
}

const slotState: fc.Arbitrary<SlotState> = fc.record({
  type: fc.constantFrom("ClusterIP", "NodePort", "LoadBalancer"),
  protocol: fc.constantFrom("TCP", "UDP"),
  ports: fc.constantFrom(1, 2),
  internal: fc.constantFrom("Cluster", "Local"),
  external: fc.constantFrom("Cluster", "Local"),
  externalIP: fc.boolean(),
  ranges: fc.boolean(),
  affinity: fc.boolean(),
  endpoints: fc.array(fc.constantFrom("ready", "terminating", "none"), { minLength: 4, maxLength: 4 }),
});

type Changes = readonly (readonly [slot: number, state: SlotState | undefined])[];

/** Some changes of these slots, in order: what each comes to hold; undefined: nothing. */
export function slotChanges(slots: readonly number[], most = 6): fc.Arbitrary<Changes> {
  const change = fc.tuple(fc.constantFrom(...slots), fc.option(slotState, { nil: undefined }));
  return fc.array(change, { minLength: 1, maxLength: most });
}

/** Changes of five slots, batch by batch. */
export const slotHistory: fc.Arbitrary<readonly Changes[]> = fc.array(slotChanges([1, 2, 3, 4, 5], 4), {
  minLength: 1,
  maxLength: 6,
});

/** A plain TCP service of one port with one endpoint, which runs here, or as told. */
export function webState(state: Partial<SlotState> = {}): SlotState {
  return {
    type: "ClusterIP",
    protocol: "TCP",
    ports: 1,
    internal: "Cluster",
    external: "Cluster",
    externalIP: false,
    ranges: false,
    affinity: false,
    endpoints: ["ready", "none", "none", "none"],
    ...state,
  };
}

/**
 * Some slots share an external address: the plan gives it to one of them. It is no endpoint's, or that endpoint would
 * be on every node in ipvs mode, which binds it.
 */
export function externalAddress(slot: number): string {
  return `192.0.2.${100 + (slot % 3)}`;
}

/** The objects of a slot, the Service first. */
export function slotObjects(slot: number, state: SlotState): readonly RawObject[] {
  const external = state.type !== "ClusterIP";
  const names = ["main", "other"].slice(0, state.ports);
  const made = service(`slot-${slot}`, {
    type: state.type,
    clusterIPs: [slotClusterIP(slot)],
    ports: names.map((name, index) => ({
      name,
      port: 80 + index,
      targetPort: 8080 + index,
      protocol: state.protocol,
      ...(external && { nodePort: 30_000 + slot * 2 + index }),
    })),
    internalTrafficPolicy: state.internal,
    ...(external && { externalTrafficPolicy: state.external }),
    ...(state.externalIP && { externalIPs: [externalAddress(slot)] }),
    ...(state.type === "LoadBalancer" && { ingress: [{ ip: `203.0.113.${slot}` }] }),
    ...(state.type === "LoadBalancer" && state.ranges && { sourceRanges: ["198.51.100.0/24", "10.201.0.0/24"] }),
    ...(state.type === "LoadBalancer" && state.external === "Local" && { healthCheckNodePort: 31_000 + slot }),
    ...(state.affinity && { affinitySeconds: 60 }),
  });
  const endpoints = state.endpoints.flatMap((kind, index) =>
    kind === "none"
      ? []
      : [
          {
            address: `10.144.${(index < 2 ? 0 : 128) + (slot >> 6)}.${(slot & 63) * 4 + index}`,
            nodeName: index < 2 ? "node-a" : "node-b",
            ready: kind === "ready",
            serving: true,
            terminating: kind === "terminating",
          },
        ],
  );
  const ports = names.map((name, index) => ({ name, port: 8080 + index, protocol: state.protocol }));
  return [made, endpointSlice(`slot-${slot}`, { service: `slot-${slot}`, family: "IPv4", ports, endpoints })];
}

export function slotClusterIP(slot: number): string {
  return `10.96.3.${slot}`;
}
