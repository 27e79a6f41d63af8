/**
 * The network that an agent of a CNI other than the cluster's first serves, and the EndpointSlices that are mirrored
 * for it.
 */

import { fieldsOf, objectAt, textAt } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import {
  type ClusterView,
  decodeEndpointSlice,
  type EndpointSlice,
  type IPFamily,
  type ModeSemantics,
  type OwnershipDecision,
  quoted,
  type ServiceKey,
  serviceKey,
} from "@fairlead/core";
import type { ObjectKey, Subscription } from "@fairlead/watch";
import { ruleAnnotations } from "./settings.ts";

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

/** The service rule (multiCNI.serviceRules) that leaves the Services of such networks to them. */
export const LEAVING_RULES: Readonly<Record<PodNetwork["kind"], string>> = {
  "user-defined network": "{namespaceLabel: k8s.ovn.org/primary-user-defined-network, ownership: foreign}",
  VPC: `{annotation: ${VPC}, notIn: [{defaultVPC: true}], ownership: foreign}`,
};

/** The annotations of Services that tools keep: those that rules ask for, and the one that names a VPC. */
export function shownAnnotations(
  config: AgentConfig,
  semantics: Pick<ModeSemantics, "preserveDestination"> = {},
): ReadonlySet<string> {
  return new Set([...ruleAnnotations(config, semantics), VPC]);
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

/**
 * An EndpointSlice that OVN-Kubernetes keeps for a Service of a namespace whose primary network is a user-defined one:
 * a copy of the slice of Kubernetes' own controller with the pods' addresses on that network. Proxies do not see it: it
 * lacks the label kubernetes.io/service-name. OVN-Kubernetes: docs/features/user-defined-networks,
 * go-controller/pkg/clustermanager/endpointslicemirror.
 */
export interface MirroredSlice {
  readonly slice: EndpointSlice;
  /** The user-defined network, as OVN-Kubernetes calls it; "" where it does not say. */
  readonly network: string;
  /** The name of the slice that it copies; "" where it does not say. */
  readonly source: string;
}

/** The mirrored slices that are there. They decide nothing: people are shown what they say. */
export class MirroredSlices {
  readonly #slices = new Map<ObjectKey, MirroredSlice>();
  readonly #byService = new Map<ServiceKey, Set<ObjectKey>>();

  /** In the byte order of their names. */
  of(service: ServiceKey): readonly MirroredSlice[] {
    const found = [...(this.#byService.get(service) ?? [])].flatMap((key) => this.#slices.get(key) ?? []);
    return found.sort((a, b) => (a.slice.name < b.slice.name ? -1 : 1));
  }

  upsert(key: ObjectKey, mirrored: MirroredSlice): void {
    this.delete(key);
    this.#slices.set(key, mirrored);
    const service = serviceOf(mirrored);
    this.#byService.set(service, (this.#byService.get(service) ?? new Set()).add(key));
  }

  /** @returns the Service that it was of; undefined: there was none of that name */
  delete(key: ObjectKey): ServiceKey | undefined {
    const known = this.#slices.get(key);
    if (known === undefined) return undefined;
    const service = serviceOf(known);
    this.#slices.delete(key);
    this.#byService.get(service)?.delete(key);
    if (this.#byService.get(service)?.size === 0) this.#byService.delete(service);
    return service;
  }
}

/**
 * The same subscription, of which the mirrored slices are kept apart.
 *
 * @param to of EndpointSlices
 * @param onChange a mirrored slice of this Service came, changed or went
 */
export function keepingMirrors<T>(
  to: Subscription<T>,
  mirrors: MirroredSlices,
  onChange: (service: ServiceKey) => void = () => {},
): Subscription<T | Mirror> {
  return {
    decode(raw) {
      const mirrored = decodeMirroredSlice(raw);
      return mirrored === undefined ? to.decode(raw) : new Mirror(mirrored);
    },
    onChange(change) {
      if (change.type === "synced") return to.onChange(change);
      const before = mirrors.delete(change.key);
      if (before !== undefined) onChange(before);
      if (change.type === "delete") return before === undefined ? to.onChange(change) : undefined;
      const { key, object } = change;
      if (!(object instanceof Mirror)) return to.onChange({ type: "upsert", key, object });
      mirrors.upsert(key, object.mirrored);
      onChange(serviceOf(object.mirrored));
    },
  };
}

/** kube-ovn: --cluster-router. */
const DEFAULT_VPC = "ovn-cluster";

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

const MANAGED_BY = "endpointslice.kubernetes.io/managed-by";
const MIRROR_CONTROLLER = "endpointslice-mirror-controller.k8s.ovn.org";
const MIRRORED_SERVICE = "k8s.ovn.org/service-name";

/** @returns undefined: it is no such slice, or cannot be read. Never throws */
function decodeMirroredSlice(raw: unknown): MirroredSlice | undefined {
  const metadata = objectAt(raw, "metadata");
  if (textAt(objectAt(metadata, "labels"), MANAGED_BY) !== MIRROR_CONTROLLER) return undefined;
  const { object: slice } = decodeEndpointSlice(fieldsOf(raw), undefined, { serviceLabel: MIRRORED_SERVICE });
  if (slice === undefined) return undefined;
  // Its first releases had labels in the place of these annotations.
  const said = (name: string) =>
    textAt(objectAt(metadata, "annotations"), name) ?? textAt(objectAt(metadata, "labels"), name) ?? "";
  return {
    slice,
    network: said("k8s.ovn.org/endpointslice-network"),
    source: said("k8s.ovn.org/source-endpointslice"),
  };
}

/** What stands among decoded objects for a mirrored slice. */
class Mirror {
  readonly mirrored: MirroredSlice;

  constructor(mirrored: MirroredSlice) {
    this.mirrored = mirrored;
  }
}

function serviceOf({ slice: { namespace, serviceName } }: MirroredSlice): ServiceKey {
  return serviceKey(namespace, serviceName);
}
