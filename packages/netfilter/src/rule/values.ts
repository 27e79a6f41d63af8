export type { IPFamily } from "@fairlead/base";

/** A name that a rule compares, such as an interface or a protocol. */
export interface NameMatch {
  /** `!`: every name but this. */
  readonly negated?: boolean;
  /** The name as iptables-save writes it. */
  readonly value: string;
}
