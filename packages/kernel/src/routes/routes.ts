import type { IPFamily } from "../family.ts";

/** A route by one interface. */
export interface RouteEntry {
  /** A CIDR or address as `ip` prints it, or `default`. */
  readonly destination: string;
  /** Absent: the destination is on the link. `inet6 fe80::1` where it has an address of the other family. */
  readonly gateway?: string;
  /** By which it leads. */
  readonly interface: string;
  /** The kernel's preference among routes of one destination, the lowest first. */
  readonly metric: number;
  /** The address that the node itself sends from. */
  readonly source?: string;
  /** The gateway is taken to be on the link, whatever the addresses there. */
  readonly onLink?: true;
}

/** A rule that has packets with a mark routed by a table. */
export interface MarkRule {
  /** Rules are asked in ascending order of it. */
  readonly priority: number;
  /** The mark's bits within the mask. */
  readonly mark: number;
  /** Which bits of the mark count. */
  readonly mask: number;
  /** The routing table that it leads to. */
  readonly table: number;
}

/** A route with its table. */
export interface TableRoute extends RouteEntry {
  /** The number of the routing table. */
  readonly table: number;
}

/** What is there in one family. */
export interface RoutingState {
  /** Routes of the table `main` whose link is up; those with several next hops once for each. */
  readonly main: readonly RouteEntry[];
  /** Routes that have Fairlead's protocol number. */
  readonly own: readonly TableRoute[];
  /** Rules that have Fairlead's protocol number. */
  readonly rules: readonly MarkRule[];
}

/** One change of routes or rules. A route that is set replaces the one of its destination, table and metric. */
export type RoutingCommand =
  | { readonly kind: "set-route"; readonly route: TableRoute }
  | { readonly kind: "delete-route"; readonly route: TableRoute }
  | { readonly kind: "add-rule"; readonly rule: MarkRule }
  | { readonly kind: "delete-rule"; readonly rule: MarkRule };

/** Until when and what changes are told. */
export interface RoutingWatchOptions {
  /** Ends it. */
  readonly signal: AbortSignal;
  /** Whether it matters when an interface goes up or down. */
  readonly matters: (interfaceName: string) => boolean;
}

/** Routes and routing rules in one network namespace. All that is written has a protocol number of its own. */
export interface Routing {
  /**
   * What is there now.
   *
   * @throws CommandError when `ip` is missing or fails
   */
  read(family: IPFamily): Promise<RoutingState>;
  /**
   * Carries commands out in their order, and goes on after one that the kernel refuses.
   *
   * @throws CommandError when it refused any
   */
  write(family: IPFamily, commands: readonly RoutingCommand[]): Promise<void>;
  /**
   * A step each time that routes or rules changed, until the signal aborts. Routes to single addresses, as pod networks
   * have them, do not count.
   *
   * @throws Error when the kernel cannot be listened to
   */
  watch(options: RoutingWatchOptions): AsyncIterable<void>;
}

/** The routing protocol (rtm_protocol of rtnetlink(7)) of what is Fairlead's: no other program has it by default. */
export const ROUTE_PROTOCOL = 175;
