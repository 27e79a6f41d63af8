import type {
  Effect,
  EndpointFate,
  EndpointSetName,
  Frontend,
  FrontendKind,
  HintsOutcome,
  IPFamily,
  Ownership,
  OwnershipDecision,
  Protocol,
  ServiceKey,
  TrafficPolicy,
} from "@fairlead/core";
import type { PodNetwork } from "@fairlead/intake";
import type { Mode } from "./modes/index.ts";

/** What is known of a service on one node; JSON values only. */
export interface ServiceExplanation {
  readonly service: ServiceKey;
  /** The Gateway whose Service it is; absent: none. */
  readonly gateway?: string;
  readonly node: string;
  readonly zone?: string;
  readonly mode: Mode;
  /** What of it and its EndpointSlices is valid and does other than it seems to ask for. */
  readonly notices: readonly ServiceNotice[];
  /** The families in which it has a ClusterIP. */
  readonly families: readonly FamilyExplanation[];
}

/** A notice as `docs/notices.md` lists them. */
export interface ServiceNotice {
  /** `EndpointSlice/web-abc`; absent: the Service itself. */
  readonly object?: string;
  readonly field: string;
  /** JSON; "" where there is none. */
  readonly value: string;
  readonly reason: string;
  readonly effect: Effect;
}

export interface FamilyExplanation {
  readonly family: IPFamily;
  readonly ownership: Omit<OwnershipDecision, "excludes">;
  /** What the agent's memory holds, where one was given. */
  readonly remembered?: Ownership;
  /** Where its pods are, if nodes do not share that network. */
  readonly podNetwork?: PodNetwork;
  readonly policies: Policies;
  readonly ports: readonly PortExplanation[];
}

export interface Policies {
  readonly internalTrafficPolicy: TrafficPolicy;
  readonly externalTrafficPolicy: TrafficPolicy;
  /** Seconds of ClientIP affinity; absent: none. */
  readonly affinitySeconds?: number;
  readonly loadBalancerSourceRanges: readonly string[];
  /** Where its node ports are, as the Service chooses; absent: wherever node ports are. */
  readonly nodePortAddresses?: {
    readonly addresses: readonly string[];
    readonly why?: string;
  };
  /** Who may use its node ports, as the Service says; absent: every client. */
  readonly nodePortSourceRanges?: {
    readonly ranges: readonly string[];
    readonly why?: string;
  };
  /** Clients are refused, not dropped, where a policy Local finds no endpoint. */
  readonly refusesWithoutLocal?: true;
  readonly healthCheck?: { readonly port: number; readonly localEndpoints: number };
}

export interface PortExplanation {
  /** "" where the service has one unnamed port. */
  readonly name: string;
  readonly protocol: Protocol;
  /** `TCPRoute shop/db`: the route of a Gateway that serves it; absent: none is known. */
  readonly route?: string;
  readonly frontends: readonly FrontendExplanation[];
  /** What becomes of packets that are refused or dropped, where the mode has no rule for it; absent: that. */
  readonly unserved?: string;
  /**
   * What becomes of its node port on loopback addresses: the agent's process relays it to a set, or it is refused.
   * Absent: it has no node port, or the mode does nothing special there.
   */
  readonly onLoopback?: "refused" | { readonly relayedTo: EndpointSetName };
  /** Whether its connections bypass rules once they are established; absent: nftables.fastPath is not configured. */
  readonly fastPath?: FastPathExplanation;
  /** Frontends that this port asks for and another group, or another network, has. */
  readonly lost: readonly LostFrontend[];
  /** How far spec.trafficDistribution is followed here; absent: the Service asks for none. */
  readonly distribution?: DistributionExplanation;
  /** Every endpoint of the port in its slices; of a service that is left to the pods' own network, those in that. */
  readonly endpoints: readonly EndpointFate[];
  /** Part of the new connections that a set refuses, 0 to 1; absent: none. */
  readonly refused?: Readonly<Partial<Record<EndpointSetName, number>>>;
}

export interface FastPathExplanation {
  readonly used: boolean;
  /** Which connections, or why none. */
  readonly why: string;
}

export interface DistributionExplanation {
  /** spec.trafficDistribution. */
  readonly asked: string;
  /** How near the endpoints are that get the traffic: none: they may be anywhere. */
  readonly kept: HintsOutcome["counts"];
  /** Why it is not what was asked for, or that it is. */
  readonly why: string;
}

/** A frontend as the plan has it. */
export type FrontendExplanation = Frontend;

export interface LostFrontend {
  readonly kind: FrontendKind;
  readonly address?: string;
  readonly port: number;
  /** Name of the group that has it; absent: another network. */
  readonly heldBy?: string;
}
