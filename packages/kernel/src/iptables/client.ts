import type { IptablesPort } from "@fairlead/netfilter";
import type { Input } from "../runner/runner.ts";

/**
 * The iptables of one family. Rules of others are read leniently: one that can't be read stands as its text (a match of
 * kind "unreadable"), and stops nothing. `FakeIptables` is one, too.
 */
export interface IptablesClient extends IptablesPort {
  /**
   * @throws IptablesError with the number and text of the line, its `cause` the CommandError; the table that failed is
   * as it was
   */
  restore(payload: Input): Promise<void>;
}
