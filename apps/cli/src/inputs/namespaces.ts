import type { ClusterView } from "@fairlead/core";
import { CommandFailure } from "../frame/errors.ts";

/**
 * Whether a service is in the namespace that is asked for.
 *
 * @param namespace undefined: all are
 * @param service `namespace/name`, perhaps with a port behind it
 */
export function isIn(namespace: string | undefined, service: string): boolean {
  return namespace === undefined || service.startsWith(`${namespace}/`);
}

/**
 * @throws CommandFailure where no service is in the namespace that is asked for: nothing would be looked at
 */
export function demandServices(namespace: string | undefined, state: ClusterView): void {
  if (namespace === undefined) return;
  for (const key of state.keys()) if (isIn(namespace, key) && state.service(key) !== undefined) return;
  throw new CommandFailure(`no services found in ${namespace} namespace: nothing was compared`);
}
