import type { IPFamily, Protocol } from "../objects.ts";
import type { ServicePortGroup } from "../plan.ts";

/**
 * Which group serves an address or a node port, in one family. Frontends that are left to another network are not
 * there.
 */
export interface FrontendLookup<Group extends ServicePortGroup = ServicePortGroup> {
  /** The family of the addresses. */
  readonly family: IPFamily;
  /** The group at a canonical address and port; undefined where nothing is served. */
  at(protocol: Protocol, address: string, port: number): Group | undefined;
  /** The group at a node port; undefined where nothing is served. */
  atNodePort(protocol: Protocol, port: number): Group | undefined;
}
