import { type Clock, type IPFamily, nextTurn, systemClock } from "@fairlead/base";
import { type ConfiguredOptions, DEFAULTS, type PlanSettings } from "./plan/context.ts";
import type { Devices } from "./port.ts";

/** What may be chosen when the backend is made; what a configuration decides, `configuredOptions` makes. */
export interface NftablesOptions extends Partial<ConfiguredOptions> {
  /** The family whose table this backend programs. */
  readonly family: IPFamily;
  /** Gives the event loop its turn between pieces of work. Default `nextTurn`. */
  readonly turn?: () => Promise<void>;
  /** Default the system's. */
  readonly clock?: Pick<Clock, "monotonic">;
  /** Gets the reason when a full sync cannot read session affinity. Default: none. */
  readonly onForgottenClients?: (reason: Error) => void;
  /** The devices whose packets may bypass rules, as they are now; with `fastPath` only. Default: none. */
  readonly devices?: () => Devices;
  /** The name that a device with this number has now; undefined: it is gone. Default: gone. */
  readonly deviceName?: (index: number) => string | undefined;
  /** Gets a device that the kernel does not take into the flowtable, and why. Default: none. */
  readonly onRefusedDevice?: (device: string, reason: string) => void;
}

/** The options with every default filled in. */
export interface ResolvedOptions extends PlanSettings {
  readonly turn: () => Promise<void>;
  readonly clock: Pick<Clock, "monotonic">;
  readonly onForgottenClients: (reason: Error) => void;
  readonly devices: () => Devices;
  readonly deviceName: (index: number) => string | undefined;
  readonly onRefusedDevice: (device: string, reason: string) => void;
}

/** The part of an agent's configuration (`AgentConfig` of @fairlead/config) that this mode reads. */
interface Configuration extends Pick<ConfiguredOptions, "serviceProxyName"> {
  readonly nftables: Omit<ConfiguredOptions, "serviceProxyName" | "fastPath"> & { readonly fastPath?: object };
}

/** The options for a configuration: the same in the agent, which writes the table, and in the tools. */
export function configuredOptions({
  serviceProxyName,
  nftables: { masqueradeBit, loopbackNodePorts, fastPath },
}: Configuration): ConfiguredOptions {
  return { serviceProxyName, masqueradeBit, loopbackNodePorts, fastPath: fastPath !== undefined };
}

/** @throws RangeError when masqueradeBit is no bit of a mark */
export function resolveOptions(options: NftablesOptions): ResolvedOptions {
  const resolved = {
    ...DEFAULTS,
    turn: nextTurn,
    clock: systemClock,
    onForgottenClients: () => {},
    devices: () => new Map(),
    deviceName: () => undefined,
    onRefusedDevice: () => {},
    ...options,
  };
  const bit = resolved.masqueradeBit;
  if (!Number.isInteger(bit) || bit < 0 || bit > 31) {
    throw new RangeError(`masqueradeBit is ${bit}; it must be a whole number from 0 to 31`);
  }
  return resolved;
}
