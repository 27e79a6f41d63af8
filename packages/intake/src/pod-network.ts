import type { AgentConfig } from "@fairlead/config";
import type { ClusterView, IPFamily, OwnershipDecision, ServiceKey } from "@fairlead/core";
import { quoted } from "@fairlead/core";
import type { MirroredSlice, MirroredSlices } from "./mirrored-slices.ts";
import { ruleAnnotations } from "./networks/settings.ts";

/** A network that a Service's pods are in, and that nodes and other networks do not share with them. */
export interface PodNetwork {
  readonly kind: "user-defined network" | "VPC";
  /** As its own project calls it, in quotes where it is no plain name. */
  readonly name: string;
  /** What says so, and what it means for clients: a sentence for the operator. */
  readonly why: string;
  /** The pods' addresses there; absent: those of the Service's EndpointSlices. */
  readonly addresses?: readonly string[];
}

/** What people are shown of pods' networks is made of these. */
export interface PodNetworkFacts {
  readonly state: Pick<ClusterView, "service" | "slices">;
  /** Default: none are known. */
  readonly mirrored?: Pick<MirroredSlices, "of"> | undefined;
  /** The names of kube-ovn's default VPC; absent: what it is called unless it is configured. */
  readonly defaultVPCs?: readonly string[] | undefined;
}

/** kube-ovn writes it on every Service (pkg/controller/endpoint_slice.go). */
const VPC = "ovn.kubernetes.io/vpc";
/** kube-ovn: --cluster-router. */
const DEFAULT_VPC = "ovn-cluster";

/** The service rule (multiCNI.serviceRules) that leaves the Services of such networks to them. */
export const LEAVING_RULES: Readonly<Record<PodNetwork["kind"], string>> = {
  "user-defined network": "{namespaceLabel: k8s.ovn.org/primary-user-defined-network, ownership: foreign}",
  VPC: `{annotation: ${VPC}, notIn: [{defaultVPC: true}], ownership: foreign}`,
};

/** The annotations of Services that tools keep: those that rules ask for, and the one that names a VPC. */
export function shownAnnotations(config: AgentConfig): ReadonlySet<string> {
  return new Set([...ruleAnnotations(config), VPC]);
}

/** The mirrored slices of a service in one family. */
export function mirroredIn(
  { mirrored }: PodNetworkFacts,
  service: ServiceKey,
  family: IPFamily,
): readonly MirroredSlice[] {
  return mirrored?.of(service).filter(({ slice }) => slice.family === family) ?? [];
}

/**
 * @param frontends what is programmed of the service here
 * @returns undefined: the pods are where nodes reach them, as far as objects say
 */
export function podNetworkOf(
  facts: PodNetworkFacts,
  service: ServiceKey,
  family: IPFamily,
  frontends: OwnershipDecision["frontends"],
): PodNetwork | undefined {
  const mirrors = mirroredIn(facts, service, family);
  const [first] = mirrors;
  if (first !== undefined) return userDefined(mirrors, first, frontends !== "none");
  return inVPC(facts, service, frontends !== "none");
}

function userDefined(mirrors: readonly MirroredSlice[], first: MirroredSlice, isServed: boolean): PodNetwork {
  const addresses = new Set(mirrors.flatMap(({ slice }) => slice.endpoints.map(({ address }) => address)));
  const said = `EndpointSlice ${first.slice.name} of OVN-Kubernetes, which serves the Service there`;
  const means = isServed
    ? `; what is served here leads to the default network's addresses of these pods, which answer only where annotation k8s.ovn.org/open-default-ports opens the port; the service rule ${LEAVING_RULES["user-defined network"]} leaves it to OVN-Kubernetes`
    : "; the addresses in the Service's own EndpointSlices are the default network's";
  return { kind: "user-defined network", name: nameOf(first.network), why: said + means, addresses: [...addresses] };
}

function inVPC(
  { state, defaultVPCs }: PodNetworkFacts,
  service: ServiceKey,
  isServed: boolean,
): PodNetwork | undefined {
  const vpc = state.service(service)?.annotations[VPC];
  const defaults = defaultVPCs !== undefined && defaultVPCs.length > 0 ? defaultVPCs : [DEFAULT_VPC];
  if (vpc === undefined || vpc === "" || defaults.includes(vpc)) return undefined;
  const said = `annotation ${VPC}, the default VPC is ${defaults.join(", ")}: no node can reach it`;
  const means = isServed
    ? `; what is served here leads nowhere, or to a pod of another network with the same address; the service rule ${LEAVING_RULES.VPC} leaves it to kube-ovn`
    : ", and kube-ovn serves the Service inside of it";
  return { kind: "VPC", name: nameOf(vpc), why: said + means };
}

/** Names come from objects, which may have any text there. */
function nameOf(text: string): string {
  if (/^[\w.-]{1,253}$/.test(text)) return text;
  return text === "" ? "unnamed" : quoted(text.slice(0, 60));
}
