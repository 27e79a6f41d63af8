import type { NodeState, ServiceKey } from "@fairlead/core";
import type { ServiceRow } from "../protocol/index.ts";
import type { AgentSetup } from "./agent-setup.ts";
import type { UnusableObjects } from "./unusable.ts";

export interface ClusterOptions {
  /** How the agents are set up; `setSetup` says it of a node. */
  readonly setup: AgentSetup;
  /** The node that the list looks from; undefined: the first one by name. */
  readonly nodeName: string | undefined;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Takes what cannot be used of the objects. */
  readonly unusable: Pick<UnusableObjects, "take">;
  /** The services that came, changed or went, once the first state is known. */
  readonly onServices: (rows: readonly ServiceRow[], gone: readonly ServiceKey[]) => void;
  /** A node that came, changed or (undefined) went. */
  readonly onNode: (name: string, node: NodeState | undefined) => void;
  /** Whether Nodes may be listed, whenever that is known. */
  readonly onNodesForbidden?: (are: boolean) => void;
}
