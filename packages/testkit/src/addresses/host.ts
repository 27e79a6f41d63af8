import type { IPFamily } from "@fairlead/core";

/** Where something runs, as the node under test sees its packets come. */
export type HostKind = "pod" | "node" | "outside";

/** One participant of the test ground: a pod, a node or a client outside. Addresses are canonical. */
export interface Host {
  /** Unique, at most 11 characters, so that an interface can be named for it. */
  readonly name: string;
  readonly addresses: Readonly<Record<IPFamily, string>>;
  /** The node it runs on, or is; absent outside of the cluster. */
  readonly node?: string;
  readonly place: HostKind;
  /** The interface of node-a through which its packets come; absent for node-a itself. */
  readonly interface?: string;
}

/** @param family the family of the other end */
export function addressOf(host: Host, family: IPFamily): string {
  return host.addresses[family];
}
