import type { IPFamily, Protocol } from "@fairlead/base";

/** A Service that asks for endpoints on a secondary network, as far as its slices need it. */
export interface NetworkService {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** `namespace/name` of a NetworkAttachmentDefinition. */
  readonly network: string;
  /** Its slices carry them too, as upstream's do: a proxy chooses slices by them. */
  readonly labels: Readonly<Record<string, string>>;
  /** Pods have all of these labels. Never empty. */
  readonly selector: Readonly<Record<string, string>>;
  readonly families: readonly IPFamily[];
  readonly ports: readonly ServicePort[];
  readonly publishNotReadyAddresses: boolean;
  /** metadata.deletionTimestamp is set: it gets no new slices, which the garbage collector would have to find again. */
  readonly terminating: boolean;
  /** spec.trafficDistribution: endpoints get hints by it. */
  readonly distribution?: "PreferSameZone" | "PreferSameNode";
}

export interface ServicePort {
  /** "" where the Service has one unnamed port. */
  readonly name: string;
  readonly protocol: Protocol;
  /** A port's number, or the name of a container's port. */
  readonly target: number | string;
}

/** Why a Service gets no slices, or a pod no endpoint: the reason of an Event on the Service. */
export interface SliceProblem {
  readonly reason: ProblemReason;
  /** A sentence: what is wrong, and what would be right. */
  readonly message: string;
  /** The pod that is left out; absent: it is the Service. */
  readonly pod?: string;
}

export type ProblemReason =
  | "AddressInServiceCIDR"
  | "ExternalName"
  | "HeadlessService"
  | "InvalidNetworkName"
  | "InvalidNetworkStatus"
  | "NetworkNotFound"
  | "NoNetworkAddress"
  | "NoNetworkStatus"
  | "NoSelector"
  | "SeveralInterfaces";
