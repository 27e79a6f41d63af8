import type { ServiceHandle } from "../service.ts";

/** The service proxy name of the instances. */
export const NAME = "edge";

/** Gives a service to the named instance, or back to the first proxy. */
export function giveTo(service: ServiceHandle, name: string | null): Promise<void> {
  return service.patch({ metadata: { labels: { "service.kubernetes.io/service-proxy-name": name } } });
}
