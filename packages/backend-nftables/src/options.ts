import { type Clock, type IPFamily, nextTurn, systemClock } from "@fairlead/base";
import { DEFAULTS, type PlanSettings } from "./plan/context.ts";

/** What may be chosen when the backend is made. */
export interface NftablesOptions {
  readonly family: IPFamily;
  /**
   * The services that it is for (serviceProxyName); with a name it has a table of its own beside another proxy's.
   * Default "".
   */
  readonly serviceProxyName?: string;
  /** Bit of the packet mark that asks for masquerading, 0…31 (nftables.masqueradeBit). Default 14. */
  readonly masqueradeBit?: number;
  /** Traffic to ClusterIPs is masqueraded whoever sends it (nftables.masqueradeAll). Default false. */
  readonly masqueradeAll?: boolean;
  /** Gives the event loop its turn between pieces of work. Default `nextTurn`. */
  readonly turn?: () => Promise<void>;
  /** Default the system's. */
  readonly clock?: Pick<Clock, "monotonic">;
  /** Is told why a full sync does not know which clients have affinity to which endpoints. Default: nobody. */
  readonly onForgottenClients?: (reason: Error) => void;
}

/** The options with every default filled in. */
export interface ResolvedOptions extends PlanSettings {
  readonly turn: () => Promise<void>;
  readonly clock: Pick<Clock, "monotonic">;
  readonly onForgottenClients: (reason: Error) => void;
}

/** @throws RangeError when masqueradeBit is no bit of a mark */
export function resolveOptions(options: NftablesOptions): ResolvedOptions {
  const resolved = { ...DEFAULTS, turn: nextTurn, clock: systemClock, onForgottenClients: () => {}, ...options };
  const bit = resolved.masqueradeBit;
  if (!Number.isInteger(bit) || bit < 0 || bit > 31) {
    throw new RangeError(`masqueradeBit is ${bit}; it must be a whole number from 0 to 31`);
  }
  return resolved;
}
