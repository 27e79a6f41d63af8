import type { LinkCommand } from "@fairlead/netfilter";
import type { Turn } from "../runner/commands.ts";

/** Devices of this network namespace and their addresses. */
export interface LinksClient {
  /**
   * All addresses of a device, both families, without their lengths; undefined: there is no such device.
   *
   * @throws CommandError when `ip` is missing or fails otherwise
   * @throws NetlinkError when the kernel refuses
   */
  addresses(device: string): Promise<ReadonlySet<string> | undefined>;
  /**
   * Makes and deletes dummy devices, adds and deletes addresses, in this order. No transaction.
   *
   * @param turn gives the event loop its turn now and then; default `nextTurn`
   * @throws CommandError for the first command that `ip -batch -` fails at; the commands before it count, those after
   *   it do not
   * @throws NetlinkError for the first that is refused; those before it count, those after it may
   */
  change(commands: Iterable<LinkCommand>, turn?: Turn): Promise<void>;
}
