import { fieldsOf, itemsOf, stringOf } from "@fairlead/base";
import { type ServiceKey, serviceKey } from "@fairlead/core";

/** A resource whose objects name Services that the API server itself calls, from the network of its node. */
export interface CallingResource {
  readonly apiVersion: string;
  readonly plural: string;
  readonly kind: string;
  /** The references to Services in an object: `{namespace, name}` each, untrusted. */
  readonly services: (raw: unknown) => readonly unknown[];
}

const webhooks = (raw: unknown) =>
  itemsOf(fieldsOf(raw)["webhooks"]).map((one) => fieldsOf(fieldsOf(one)["clientConfig"])["service"]);

/** Webhooks for admission and for conversion, and API groups that another server serves. */
export const CALLING_RESOURCES: readonly CallingResource[] = [
  {
    apiVersion: "admissionregistration.k8s.io/v1",
    plural: "validatingwebhookconfigurations",
    kind: "ValidatingWebhookConfiguration",
    services: webhooks,
  },
  {
    apiVersion: "admissionregistration.k8s.io/v1",
    plural: "mutatingwebhookconfigurations",
    kind: "MutatingWebhookConfiguration",
    services: webhooks,
  },
  {
    apiVersion: "apiextensions.k8s.io/v1",
    plural: "customresourcedefinitions",
    kind: "CustomResourceDefinition",
    services(raw) {
      const conversion = fieldsOf(fieldsOf(fieldsOf(raw)["spec"])["conversion"]);
      return [fieldsOf(fieldsOf(conversion["webhook"])["clientConfig"])["service"]];
    },
  },
  {
    apiVersion: "apiregistration.k8s.io/v1",
    plural: "apiservices",
    kind: "APIService",
    services: (raw) => [fieldsOf(fieldsOf(raw)["spec"])["service"]],
  },
];

/** By Service the objects that have the API server call it: `ValidatingWebhookConfiguration/vault`. */
export type CalledServices = ReadonlyMap<ServiceKey, readonly string[]>;

/** @param lists the objects of each resource, straight from JSON and untrusted */
export function calledServices(lists: ReadonlyMap<CallingResource, readonly unknown[]>): CalledServices {
  const called = new Map<ServiceKey, Set<string>>();
  for (const [{ kind, services }, objects] of lists) {
    for (const raw of objects) {
      const object = `${kind}/${stringOf(fieldsOf(fieldsOf(raw)["metadata"])["name"]) ?? ""}`;
      for (const reference of services(raw)) {
        const [namespace, name] = ["namespace", "name"].map((field) => stringOf(fieldsOf(reference)[field]));
        if (namespace === undefined || name === undefined) continue;
        const key = serviceKey(namespace, name);
        called.set(key, (called.get(key) ?? new Set()).add(object));
      }
    }
  }
  return new Map(Array.from(called, ([key, objects]) => [key, [...objects].sort()]));
}
