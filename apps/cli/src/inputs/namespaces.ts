/**
 * Whether a service is in the namespace that is asked for.
 *
 * @param namespace undefined: all are
 * @param service `namespace/name`, perhaps with a port behind it
 */
export function isIn(namespace: string | undefined, service: string): boolean {
  return namespace === undefined || service.startsWith(`${namespace}/`);
}
