import type { IPFamily, NodePlan } from "@fairlead/core";

/**
 * The address that relays listen on. Any address of the node's own will do, since rules lead every packet there; one
 * only, because an answer by UDP must come from the address that was asked, which a socket on all addresses does not
 * know.
 *
 * @param current the address in use, kept as long as the node has it
 * @throws Error where the node has none but loopback and link-local ones
 */
export function hostAddress(family: IPFamily, { nodeAddresses = [] }: NodePlan, current?: string): string {
  if (current !== undefined && nodeAddresses.includes(current)) return current;
  const usable = nodeAddresses.find((address) => !LIMITED.test(address));
  if (usable === undefined) {
    throw new Error(`${family}: the node has no address that relays could listen on; give one with --bind-address`);
  }
  return usable;
}

/** Loopback and link-local addresses. */
const LIMITED = /^(127\.|169\.254\.|::1$|fe[89ab][0-9a-f]:)/;
