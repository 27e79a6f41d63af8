import type { IPFamily } from "../family.ts";

/** One address of the node. */
export interface NodeAddress {
  /** The family of the address. */
  readonly family: IPFamily;
  /** As the kernel prints it, which is canonical. */
  readonly address: string;
  /** Length of its network's prefix in bits. */
  readonly prefixLength: number;
  /** The name of the interface that has it. */
  readonly interface: string;
  /** `global`, `link`, `host`, … */
  readonly scope: string;
  /** Whether its interface is turned on. */
  readonly up: boolean;
}

/** What came to the device of ipvs mode, kube-ipvs0, or went from it; without an address it is the device itself. */
export interface ServiceDeviceChange {
  /** The canonical address that came or went. */
  readonly address?: string;
  /** Whether it went; otherwise it came. */
  readonly gone: boolean;
}

/** How addresses are watched. */
export interface WatchOptions {
  /** Ends the iteration. */
  readonly signal: AbortSignal;
  /** Gets each change of kube-ipvs0 by any program, except for those while the source repairs itself. */
  readonly onServiceDevice?: (change: ServiceDeviceChange) => void;
}

/** The addresses of this network namespace, but for those of kube-ipvs0, which are services'. */
export interface NodeAddresses {
  /**
   * All addresses, by interface in the kernel's order.
   *
   * @throws CommandError when `ip` is missing or fails
   * @throws NetlinkError when the kernel refuses
   */
  list(): Promise<readonly NodeAddress[]>;
  /**
   * The addresses at once and again whenever they are different, until the signal aborts. Changes that come together
   * are given together. What goes wrong on the way is repaired and reported to the source's `onProblem`; it never ends
   * the watch.
   */
  watch(options: WatchOptions): AsyncIterable<readonly NodeAddress[]>;
}
