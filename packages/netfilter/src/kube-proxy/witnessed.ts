import type { IptablesPort } from "./iptables-port.ts";

/**
 * Writes rules and checks by the kernel's generation that the tool did: one that ends with exit code 0 and has written
 * nothing would leave a new service unserved without a word. On the legacy variant, where the same rules may have been
 * there before, the next check of the rules finds it.
 *
 * @param changes whether what was written cannot leave the kernel as it was: an empty chain emptied again does
 * @throws Error where the kernel is as it was before; what `write` throws
 */
export async function witnessed<T>(
  port: Pick<IptablesPort, "family" | "variant" | "glance">,
  write: () => Promise<T>,
  changes: (result: T) => boolean = () => true,
): Promise<T> {
  const generation = async () => (port.variant === "nft" ? (await port.glance?.("nat"))?.state : undefined);
  const before = await generation();
  const result = await write();
  if (before === undefined || !changes(result) || before !== (await generation())) return result;
  throw new Error(`iptables-restore (${port.family}) reported success, but the kernel's rules are as they were before`);
}
