import type { SetCommand, SetState } from "@fairlead/netfilter";
import type { Turn } from "../runner/commands.ts";

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
   * Does these commands as one `ipset -exist restore`, or without a process where few members change: what is there
   * already, or gone, is no error. No transaction.
   *
   * @param turn gives the event loop its turn now and then; default `nextTurn`
   * @throws CommandError for the first command that fails. Those before it count, but for additions (deletions) to one
   *   set that stand right before one that the tool itself refuses: it collects those, and had not sent them yet
   * @throws NetlinkError for the first of few members that is refused; those before it count, those after it may
   */
  change(commands: readonly SetCommand[], turn?: Turn): Promise<void>;
}
