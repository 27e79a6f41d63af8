import type { Diagnosis, Flow, ServiceTraffic } from "@fairlead/inspect";

/** `GET api/flows`: of the connections that a node tracks as much as anybody reads. */
export interface FlowsAnswer {
  readonly node: string;
  readonly at: number;
  /** What has come since the look before; absent: there was none, or it is too long ago. */
  readonly since?: FlowsSince;
  /** As `fairlead top -o json` has it. */
  readonly traffic: readonly ServiceTraffic[];
  /** As `fairlead flows -o json` has them; those that hang come first. */
  readonly flows: readonly Flow[];
  /** How many of each are left out here. */
  readonly more: { readonly services: number; readonly flows: number };
}

/** Connections that were not there at the look before, and what all have carried since. */
export interface FlowsSince {
  readonly ms: number;
  readonly opened: number;
  /** In both directions; absent: the kernel does not count. */
  readonly bytes?: number;
}

/** `GET api/doctor`: as `fairlead doctor -o json` has it. */
export interface DoctorAnswer {
  readonly node: string;
  readonly at: number;
  readonly diagnoses: readonly Diagnosis[];
}
