import type { IPFamily } from "@fairlead/core";
import type { Argv } from "@fairlead/kernel";

/** What takes one promise of a mode away on a node, while nothing repairs it. */
export interface ByHand {
  /** No service is served anymore. */
  readonly noServices: (family: IPFamily) => Argv;
  readonly noMasquerade: (family: IPFamily) => Argv;
  /** Nobody refuses for services without endpoints. */
  readonly noRefusal: (family: IPFamily) => Argv;
  /** Source ranges keep nobody out. */
  readonly noSourceRanges: (family: IPFamily) => Argv;
  /** A service, `namespace/name` at an address, TCP port 80, is not served as it should be; no error where it is so. */
  readonly noService: (family: IPFamily, service: string, address: string) => Argv;
  /** What the node itself sends to an address, TCP port 80, is led to an endpoint by a rule like ours. */
  readonly leadAway: (family: IPFamily, from: string, to: string) => Argv;
}
