import type { Input } from "../runner/runner.ts";

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
   * One `ip -batch -`, or the same without a process: of lines that make or delete a dummy device, or add or delete an
   * address (`LinkCommand`). No transaction.
   *
   * @throws CommandError for the first line that fails; the lines before it count, those after it do not
   * @throws NetlinkError for the first that is refused; those before it count, those after it may
   */
  batch(payload: Input): Promise<void>;
}
