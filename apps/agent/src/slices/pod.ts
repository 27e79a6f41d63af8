import type { Protocol } from "@fairlead/base";
import type { NetworkStatus } from "./network-status.ts";

/** The parts of a core/v1 Pod that endpoints are made of. Ten thousand of these are kept, so the rest is dropped. */
export interface Pod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** Of metadata.labels: what Services select by. */
  readonly labels: Readonly<Record<string, string>>;
  /** spec.nodeName; absent: not scheduled. */
  readonly nodeName?: string;
  /** Condition Ready is True. */
  readonly ready: boolean;
  /** metadata.deletionTimestamp is set. */
  readonly terminating: boolean;
  /** Ports of containers that have a name: what a Service's named targetPort stands for. */
  readonly namedPorts: readonly NamedPort[];
  /** "invalid": the annotation is there and cannot be read. Absent: no annotation yet. */
  readonly networks?: readonly NetworkStatus[] | "invalid";
}

export interface NamedPort {
  readonly name: string;
  readonly protocol: Protocol;
  /** 1…65535 */
  readonly port: number;
}
