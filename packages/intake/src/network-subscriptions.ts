/** The objects that networks are learned from. */

import { decodeNode } from "@fairlead/core";
import {
  CONSENT_NAME,
  consentObject,
  NAMESPACES,
  type NetworkSource,
  type Networks,
  type NetworksSettings,
  NODES,
  type ResourceRef,
  ruleNeeds,
  VPCS,
} from "@fairlead/networks";
import type { ObjectKey, OtherState, OtherSubscription } from "@fairlead/watch";

export interface NetworkSubscriptionsOptions {
  readonly networks: Networks;
  readonly sources: readonly NetworkSource[];
  /** Whether rules for services ask for the labels of namespaces, and for kube-ovn's default VPC. Default: no. */
  readonly namespaces?: boolean;
  readonly vpcs?: boolean;
  /** Where the ConfigMap `fairlead-networks` is. */
  readonly consentNamespace: string;
  /** Something came that a decision may follow from. */
  readonly onChange: () => void;
  /** What is wrong with an object; reported once. */
  readonly onProblem: (source: string, object: string, problem: string) => void;
}

export function askedFor({ sources, rules = [], consentNamespace }: NetworksSettings) {
  const { namespaceLabels, defaultVPC } = ruleNeeds(rules);
  return {
    sources: [...sources.excluded, ...sources.own],
    namespaces: namespaceLabels.size > 0,
    vpcs: defaultVPC,
    consentNamespace,
  };
}

interface Listener {
  upsert(key: ObjectKey, raw: unknown): void;
  delete(key: ObjectKey): void;
  state(state: OtherState): void;
}

/** What the networks ask of a source of objects: their own resources, the addresses of all nodes, and namespaces. */
export function networkSubscriptions(options: NetworkSubscriptionsOptions): readonly OtherSubscription[] {
  const { networks, sources } = options;
  const byResource = new Map<string, { readonly resource: ResourceRef; readonly listeners: Listener[] }>();
  const listen = (resource: ResourceRef, listener: Listener) => {
    const { group, version, plural, only } = resource;
    const name = [group, version, plural, only?.namespace, only?.name].join("/");
    const known = byResource.get(name) ?? { resource, listeners: [] };
    byResource.set(name, known);
    known.listeners.push(listener);
  };
  for (const source of sources) {
    for (const [at, resource] of source.resources.entries()) {
      listen(resource, ofSource(options, source, at, resource));
    }
  }
  listen(NODES, nodeAddresses(networks));
  if (options.namespaces === true) listen(NAMESPACES, namespaceLabels(networks));
  if (options.vpcs === true) listen(VPCS, defaultVPCs(networks));
  listen(consentObject(options.consentNamespace), consent(options));
  return Array.from(byResource.values(), ({ resource, listeners }) =>
    subscription(resource, listeners, options.onChange),
  );
}

function subscription(
  resource: ResourceRef,
  listeners: readonly Listener[],
  onChange: NetworkSubscriptionsOptions["onChange"],
): OtherSubscription {
  let known = false;
  const onState = (state: OtherState) => {
    known = true;
    for (const listener of listeners) listener.state(state);
    onChange();
  };
  return {
    resource,
    // What counts of it differs between the listeners; nothing of it is kept.
    decode: (raw) => raw,
    onChange(change) {
      if (change.type === "synced") {
        // Manifests say nothing else; a server has said already what its list is worth.
        if (!known) onState("listed");
        return;
      }
      for (const listener of listeners) {
        if (change.type === "upsert") listener.upsert(change.key, change.object);
        else listener.delete(change.key);
      }
      onChange();
    },
    onState,
  };
}

function ofSource(
  { networks, onProblem }: NetworkSubscriptionsOptions,
  { id }: NetworkSource,
  at: number,
  { kind }: ResourceRef,
): Listener {
  const nameOf = (key: ObjectKey) => `${kind}/${key.replace(/^\//, "")}`;
  return {
    upsert(key, raw) {
      const object = nameOf(key);
      for (const problem of networks.objects.upsert(id, at, object, raw)) onProblem(id, object, problem);
    },
    delete: (key) => networks.objects.delete(id, at, nameOf(key)),
    state: (state) => networks.objects.setState(id, at, state),
  };
}

/** Endpoints of a node there decide nothing. */
function nodeAddresses(networks: Networks): Listener {
  return {
    upsert: (key, raw) => networks.objects.setNode(nameOf(key), decodeNode(raw).object?.addresses ?? []),
    delete: (key) => networks.objects.setNode(nameOf(key), []),
    state: () => {},
  };
}

/** Rules for services ask for them. */
function namespaceLabels(networks: Networks): Listener {
  return {
    upsert: (key, raw) => networks.objects.setNamespace(nameOf(key), raw),
    delete: (key) => networks.objects.setNamespace(nameOf(key), undefined),
    state: (state) => networks.objects.setNamespacesState(ofBuiltIn(state)),
  };
}

/** Rules for services ask for the default one. */
function defaultVPCs(networks: Networks): Listener {
  return {
    upsert: (key, raw) => networks.objects.setVPC(key, raw),
    delete: (key) => networks.objects.setVPC(key, undefined),
    state: (state) => networks.objects.setVPCsState(state),
  };
}

/** What operators accepted, had forgotten and leave unprotected. */
function consent({ networks, onProblem, consentNamespace }: NetworkSubscriptionsOptions): Listener {
  const object = `ConfigMap/${consentNamespace}/${CONSENT_NAME}`;
  return {
    upsert(_key, raw) {
      for (const problem of networks.objects.setConsent(raw)) onProblem(CONSENT_NAME, object, problem);
    },
    delete: () => networks.objects.setConsent(undefined),
    state: (state) => networks.objects.setConsentState(ofBuiltIn(state)),
  };
}

/** Of an object without a namespace. */
function nameOf(key: ObjectKey): string {
  return key.replace(/^\//, "");
}

/** Every server has namespaces and ConfigMaps; one that says it has none is not believed. */
function ofBuiltIn(state: OtherState): Exclude<OtherState, "absent"> {
  return state === "absent" ? "unreachable" : state;
}
