import type { IPFamily, Protocol } from "../objects.ts";
import type { ServicePortGroup } from "../plan.ts";

/**
 * Which group serves an address or a node port, in one family. Frontends that are left to another network are not
 * there.
 */
export interface FrontendLookup<Group extends ServicePortGroup = ServicePortGroup> {
  readonly family: IPFamily;
  at(protocol: Protocol, address: string, port: number): Group | undefined;
  atNodePort(protocol: Protocol, port: number): Group | undefined;
}
