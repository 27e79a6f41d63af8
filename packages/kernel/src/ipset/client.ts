import type { SetState } from "@fairlead/netfilter";
import type { Input } from "../runner/runner.ts";

/** The ipsets of this network namespace. */
export interface IpsetClient {
  /**
   * `ipset save`, set by set as it is read; of named sets, which are asked for by netlink where it can be had, those
   * that are there. Their types must be ones that have a name here (`SetType`).
   *
   * @throws CommandError when the tool is missing, not permitted, or the kernel has no ipset
   * @throws NetlinkError when the kernel refuses
   */
  save(names?: Iterable<string>): AsyncIterable<SetState>;
  /**
   * One `ipset -exist restore`, or the same without a process where few members change: what is there already, or gone,
   * is no error. No transaction.
   *
   * @throws CommandError for the first line that fails. Lines before it count, but for additions (deletions) to one set
   *   that stand right before a line that the tool itself refuses: it collects those, and had not sent them yet
   * @throws NetlinkError for the first of few members that is refused; those before it count, those after it may
   */
  restore(payload: Input): Promise<void>;
}
