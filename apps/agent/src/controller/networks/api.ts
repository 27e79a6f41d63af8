/** Objects of the API server that the job of secondary networks follows. */

import { NETWORKS_MANAGER, stringOf, valueAt } from "@fairlead/base";
import { decodeServiceCIDR, type ServiceCIDR } from "@fairlead/core";
import { followServiceCIDRs } from "@fairlead/intake";
import type { ObjectChange, OtherResource, OtherState, OtherSubscription, Subscriptions } from "@fairlead/watch";
import { SLICE_MANAGER_LABEL, SLICES } from "../requests.ts";
import type { SliceState } from "./slice-state.ts";

/** Resources without which it is not known what is to be written. */
export type Needed = "services" | "pods" | "nodes" | "endpointSlices" | "serviceCIDRs";

interface SlicesSubscriptionsOptions {
  readonly state: SliceState;
  /** Empty: services of any proxy that has a name. */
  readonly serviceProxyName: string;
  readonly onChange: () => void;
  /** A service that is followed; undefined: it is gone. */
  readonly onService: (key: `${string}/${string}`, raw: unknown) => void;
  /** The first complete list of a resource is in the state. */
  readonly onSynced: (resource: Needed) => void;
  /** Whether a resource can be read. That of networks may not be there, which is no fault. */
  readonly onState: (resource: Needed | "networks", state: OtherState) => void;
}

const PROXY_NAME_LABEL = "service.kubernetes.io/service-proxy-name";

/**
 * Leads the changes of a source into the state. The state keeps what it reads of an object, and no raw one: a
 * cluster's pods are many.
 */
export function slicesSubscriptions(
  options: SlicesSubscriptionsOptions,
): Subscriptions<never, never, never, ServiceCIDR> {
  const { state, serviceProxyName, onChange, onService } = options;
  const proxy = { name: PROXY_NAME_LABEL, ...(serviceProxyName !== "" && { value: serviceProxyName }) };
  const followed = (resource: OtherResource, name: Needed, set: SetObject, decode = whole): OtherSubscription => ({
    resource,
    decode,
    onState: (is) => options.onState(name, is),
    onChange(change) {
      if (change.type === "synced") options.onSynced(name);
      else set(change.key, change.type === "upsert" ? change.object : undefined);
      onChange();
    },
  });
  const setService: SetObject = (key, raw) => {
    state.setService(key, raw);
    onService(key, raw);
  };
  return {
    serviceCIDRs: {
      decode: (raw) => decodeServiceCIDR(raw).object,
      onChange: serviceCIDRs(options),
    },
    others: [
      followed({ ...core("services", "Service"), label: proxy }, "services", setService),
      followed(core("pods", "Pod"), "pods", (key, raw) => state.setPod(key, raw)),
      followed({ ...core("nodes", "Node"), namespaced: false }, "nodes", (key, raw) =>
        state.setZone(key.slice(key.indexOf("/") + 1), zoneOf(raw)),
      ),
      followed(OWN_SLICES, "endpointSlices", (key, raw) => state.setSlice(key, raw), slicesOf(serviceProxyName)),
      networks(options),
    ],
  };
}

const ZONE_LABEL = "topology.kubernetes.io/zone";

const NETWORKS: OtherResource = {
  group: "k8s.cni.cncf.io",
  version: "v1",
  plural: "network-attachment-definitions",
  kind: "NetworkAttachmentDefinition",
  namespaced: true,
};

type SetObject = (key: `${string}/${string}`, raw: unknown) => void;

function core(plural: string, kind: string): OtherResource {
  return { group: "", version: "v1", plural, kind, namespaced: true };
}

const OWN_SLICES: OtherResource = { ...SLICES, label: { name: SLICE_MANAGER_LABEL, value: NETWORKS_MANAGER } };

function whole(raw: unknown): unknown {
  return raw;
}

/** Those of other names' Services, which have the Service's label, are another controller's. */
function slicesOf(serviceProxyName: string): (raw: unknown) => unknown {
  if (serviceProxyName === "") return whole;
  return (raw) => (valueAt(raw, "metadata", "labels", PROXY_NAME_LABEL) === serviceProxyName ? raw : undefined);
}

function zoneOf(raw: unknown): string | undefined {
  return stringOf(valueAt(raw, "metadata", "labels", ZONE_LABEL)) || undefined;
}

function serviceCIDRs({ state, onSynced, onChange }: SlicesSubscriptionsOptions) {
  const follow = followServiceCIDRs((cidrs) => state.setServiceCIDRs(cidrs));
  return (change: Parameters<typeof follow>[0]): void => {
    follow(change);
    if (change.type === "synced") onSynced("serviceCIDRs");
    onChange();
  };
}

/** The names of all networks; unknown while the resource cannot be read, so that none is called missing. */
function networks({ state, onChange, onState }: SlicesSubscriptionsOptions): OtherSubscription {
  const names = new Set<string>();
  let [complete, absent] = [false, false];
  const set = () => {
    state.setNetworks(complete && !absent ? new Set(names) : undefined);
    onChange();
  };
  return {
    resource: NETWORKS,
    decode: () => true,
    onState(is) {
      onState("networks", is);
      const was = absent;
      absent = is === "absent";
      if (absent !== was) set();
    },
    onChange(change: ObjectChange<unknown>) {
      if (change.type === "upsert") names.add(change.key);
      else if (change.type === "delete") names.delete(change.key);
      else complete = true;
      if (complete) set();
    },
  };
}
