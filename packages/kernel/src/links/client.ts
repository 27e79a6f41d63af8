import type { Input } from "../runner/runner.ts";

/** Devices of this network namespace and their addresses. */
export interface LinksClient {
  /**
   * All addresses of a device, both families, without their lengths; undefined: there is no such device.
   *
   * @throws CommandError when `ip` is missing or fails otherwise
   */
  addresses(device: string): Promise<ReadonlySet<string> | undefined>;
  /**
   * One `ip -batch -`. No transaction.
   *
   * @throws CommandError for the first line that fails; the lines before it count, those after it do not
   */
  batch(payload: Input): Promise<void>;
}
