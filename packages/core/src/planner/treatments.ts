import type { ModeSemantics } from "../backend.ts";
import type { TrafficPolicy } from "../objects.ts";
import type { EndpointSetName, Reach, SourceClass, Treatment } from "../plan.ts";

/** What the treatments of a service port's frontends follow from, besides reach and policy. */
export interface TreatmentFacts {
  /** Whether anything can be reached, from whatever node. */
  readonly anyEndpoint: boolean;
  readonly localEndpoint: boolean;
  /** The Service asks for an answer where there is no local endpoint, whatever the mode does there by itself. */
  readonly refusesWithoutLocal: boolean;
  /**
   * Whether some frontend of the service port uses cluster endpoints at all (internal policy Cluster, or an external
   * one).
   */
  readonly usesClusterEndpoints: boolean;
  readonly masqueradeAll: boolean;
  /** Even this node's pods are masqueraded, on every way to the cluster set (`OwnershipDecision.masqueradesPods`). */
  readonly masqueradesPods: boolean;
  /** Whether this node's pods can be distinguished from outside. */
  readonly detectsPods: boolean;
  readonly semantics: ModeSemantics;
}

export type Treatments = Readonly<Record<SourceClass, Treatment>>;

const REJECT: Treatment = { verdict: "reject" };
const DROP: Treatment = { verdict: "drop" };
const LEAVE: Treatment = { verdict: "leave" };

/** Of a frontend that another network serves. */
export const LEFT: Treatments = { pod: LEAVE, node: LEAVE, outside: LEAVE };

/** Whether another network serves a frontend. */
export function isLeft(frontend: { readonly treatments: Treatments }): boolean {
  return frontend.treatments.outside.verdict === "leave";
}

/**
 * `ModeSemantics.preserveDestination` under policy Cluster: endpoints of this node only, as under Local.
 *
 * @param destination the destination is kept, and the client's address with it
 */
export function preserving(destination: boolean, facts: TreatmentFacts): Treatments {
  return uniform(toLocal(facts)(!destination));
}

export function treatments(reach: Reach, policy: TrafficPolicy, facts: TreatmentFacts): Treatments {
  return BY_REACH[reach][policy](facts);
}

/** ClusterIP: clients other than pods of this node are masqueraded, so that the answer comes back through this node. */
function internal(to: ByMasquerade, facts: TreatmentFacts): Treatments {
  const pods = facts.masqueradeAll || facts.masqueradesPods;
  const others = pods || facts.detectsPods;
  return { pod: to(pods), node: to(others), outside: to(others) };
}

/** The endpoint may be on another node, which would answer past this one: everything is masqueraded. */
function externalCluster(facts: TreatmentFacts): Treatments {
  return uniform(toCluster(facts)(true));
}

/**
 * Under policy Local the client's address is kept. Where the mode has the short cut, this node's pods and the node
 * itself are sent to the cluster set, as if they had gone out to a load balancer and come in elsewhere; the node's own
 * traffic is masqueraded there because its source may be the frontend's own address.
 */
function externalLocal(facts: TreatmentFacts): Treatments {
  const outside = toLocal(facts)(false);
  if (!facts.semantics.localSourcesShortCut) return uniform(outside);
  const shortCut = toCluster(facts);
  return { pod: facts.detectsPods ? shortCut(facts.masqueradesPods) : outside, node: shortCut(true), outside };
}

type ByMasquerade = (masquerade: boolean) => Treatment;

function toCluster(facts: TreatmentFacts): ByMasquerade {
  return facts.anyEndpoint ? proxyTo("cluster") : unreachable("cluster", facts);
}

function toLocal(facts: TreatmentFacts): ByMasquerade {
  if (!facts.anyEndpoint) return unreachable("local", facts);
  if (facts.localEndpoint) return proxyTo("local");
  if (facts.refusesWithoutLocal) return unreachable("local", facts);
  if (facts.semantics.localWithoutEndpoints === "drop") return () => DROP;
  return proxyTo(facts.usesClusterEndpoints ? "cluster" : "local");
}

function unreachable(set: EndpointSetName, facts: TreatmentFacts): ByMasquerade {
  return facts.semantics.withoutEndpoints === "empty" ? proxyTo(set) : () => REJECT;
}

function proxyTo(set: EndpointSetName): ByMasquerade {
  return (masquerade) => PROXY[set][masquerade ? "masqueraded" : "plain"];
}

/** One object each: a plan has tens of thousands of them. */
const PROXY = {
  cluster: {
    plain: { verdict: "proxy", set: "cluster", masquerade: false },
    masqueraded: { verdict: "proxy", set: "cluster", masquerade: true },
  },
  local: {
    plain: { verdict: "proxy", set: "local", masquerade: false },
    masqueraded: { verdict: "proxy", set: "local", masquerade: true },
  },
} as const satisfies Record<EndpointSetName, Record<"plain" | "masqueraded", Treatment>>;

/** A policy that is not in here does not compile. */
const BY_REACH = {
  internal: {
    Cluster: (facts) => internal(toCluster(facts), facts),
    Local: (facts) => internal(toLocal(facts), facts),
  },
  external: { Cluster: externalCluster, Local: externalLocal },
} as const satisfies Record<Reach, Record<TrafficPolicy, (facts: TreatmentFacts) => Treatments>>;

function uniform(treatment: Treatment): Treatments {
  return { pod: treatment, node: treatment, outside: treatment };
}
