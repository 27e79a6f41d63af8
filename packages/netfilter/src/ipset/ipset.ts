import type { IPFamily } from "../rule/rule.ts";

/** The types of sets that a service proxy makes; others are known by their names. */
export type SetType = "hash:ip" | "hash:ip,port" | "hash:ip,port,ip" | "hash:ip,port,net" | "bitmap:port";

/** What a set is made with. */
export interface SetDefinition {
  /** At most 31 characters. */
  readonly name: string;
  /** The type of the set. */
  readonly type: SetType;
  /** Absent for bitmap:port, which has none. */
  readonly family?: IPFamily;
}

/**
 * A member as `ipset save` prints it: `10.96.0.1`, `10.96.0.1,tcp:443`, `10.144.1.5,tcp:8080,10.144.1.5`,
 * `203.0.113.1,tcp:80,198.51.100.0/24` (a single host without its length), `30080`. Addresses are canonical.
 */
export type SetMember = string;

/** A set as `ipset save` gives it. Types that have no name here come as they are. */
export interface SetState {
  /** The set's name. */
  readonly name: string;
  /** The type of the set, as the kernel has it. */
  readonly type: string;
  /** Absent for types without a family. */
  readonly family?: IPFamily;
  /** Its members as ipset prints them. */
  readonly members: ReadonlySet<SetMember>;
}

/** A change of one set or member: a netlink request, or one line of `ipset restore`. */
export type SetCommand =
  | { readonly kind: "create"; readonly set: SetDefinition }
  | { readonly kind: "add" | "del"; readonly set: string; readonly member: SetMember }
  | { readonly kind: "flush" | "destroy"; readonly set: string };
