import type { IPFamily, Ownership, ServiceKey } from "@fairlead/core";
import type { AgentStatus, ServiceReport } from "@fairlead/inspect";

/** One line of the list of services. */
export interface ServiceRow {
  readonly service: ServiceKey;
  readonly owners: Readonly<Partial<Record<IPFamily, Ownership>>>;
  /** `10.96.0.10:80`, `node port 30080`; with the protocol where it is not TCP. */
  readonly frontends: readonly string[];
  /** Distinct addresses of endpoints in slices, ready or not. */
  readonly endpoints: number;
  readonly ready: number;
  /** Ready ones on the node that the console looks from. */
  readonly local: number;
  /** Terminating ones that still serve. */
  readonly draining: number;
  /** When the Service was created, milliseconds since the epoch; absent: unknown, as in manifests. */
  readonly created?: number;
}

/** A family of a node's kernel compared with the plan. */
export interface FamilyFindings {
  readonly family: IPFamily;
  readonly services: readonly ServiceReport[];
}

/** What a look at one thing came to. */
export type ReadResult<T> =
  | { readonly state: "read"; readonly at: number; readonly tookMs: number; readonly value: T }
  | { readonly state: "failed"; readonly at: number; readonly tookMs: number; readonly error: string };

export interface NodeRow {
  readonly node: string;
  readonly zone?: string;
  readonly addresses: readonly string[];
  /** It was there when the console looked from it first; its plan is by what was known of it. */
  readonly deleted?: true;
  /** Absent: not read yet, or nothing can be read. */
  readonly kernel?: ReadResult<readonly FamilyFindings[]>;
  readonly agent?: ReadResult<AgentStatus>;
}
