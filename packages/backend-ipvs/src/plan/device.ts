import { hostCIDR } from "@fairlead/base";
import { DEVICE } from "./names.ts";

/**
 * Lines of `ip -batch`. The device stays down, as upstream's does: its addresses count as the node's own all the same.
 */
export const CREATE_DEVICE = `link add dev ${DEVICE} type dummy`;
export const DELETE_DEVICE = `link del dev ${DEVICE}`;

export function addressCommand(change: "add" | "del", address: string): string {
  return `addr ${change} ${hostCIDR(address)} dev ${DEVICE}`;
}
