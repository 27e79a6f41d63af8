import type { EndpointSetName } from "@fairlead/core";
import type { PoolKind } from "./pools.ts";

/** `service port . client`: `0 . service port . endpoint`, by their numbers. */
export const CLIENTS = "sticky-clients";

/**
 * The most clients that are remembered at once, of all services together. The kernel sets a table of pointers up for
 * them when the first service with affinity comes: 2 MiB for so many. What it takes to list them grows with the square.
 */
export const CLIENTS_SIZE = 131_072;

/** A frontend: `0 . service port`. */
export function frontendsMap({ prefix }: Pick<PoolKind, "prefix" | "set">): string {
  return prefix.startsWith("nodeport-") ? "sticky-nodeports" : "sticky-ips";
}

/** `service port . slot`: `0 . service port . endpoint`, to draw from; slots are dense. */
export function slotMap(set: EndpointSetName): string {
  return set === "local" ? "local-sticky-slots" : "sticky-slots";
}

/** `service port . endpoint . protocol`: the address and port of an endpoint that packets may go to. */
export function memberMap(set: EndpointSetName): string {
  return set === "local" ? "local-sticky-endpoints" : "sticky-endpoints";
}
