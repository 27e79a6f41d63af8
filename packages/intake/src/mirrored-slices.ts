import { fieldsOf, objectAt, textAt } from "@fairlead/base";
import { decodeEndpointSlice, type EndpointSlice, type ServiceKey, serviceKey } from "@fairlead/core";
import type { ObjectKey, Subscription } from "@fairlead/watch";

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

const MANAGED_BY = "endpointslice.kubernetes.io/managed-by";
const MIRROR_CONTROLLER = "endpointslice-mirror-controller.k8s.ovn.org";
/** The label that names the Service. */
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

/** What stands among decoded objects for a mirrored slice. */
class Mirror {
  readonly mirrored: MirroredSlice;

  constructor(mirrored: MirroredSlice) {
    this.mirrored = mirrored;
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

function serviceOf({ slice: { namespace, serviceName } }: MirroredSlice): ServiceKey {
  return serviceKey(namespace, serviceName);
}
