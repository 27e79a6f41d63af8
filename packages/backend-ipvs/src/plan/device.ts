import type { LinkCommand } from "@fairlead/netfilter";
import { DEVICE } from "./names.ts";

/** The device stays down, as upstream's does: its addresses count as the node's own all the same. */
export const CREATE_DEVICE: LinkCommand = { kind: "add-device", device: DEVICE };
export const DELETE_DEVICE: LinkCommand = { kind: "delete-device", device: DEVICE };

export function addressCommand(kind: "add-address" | "delete-address", address: string): LinkCommand {
  return { kind, device: DEVICE, address };
}
