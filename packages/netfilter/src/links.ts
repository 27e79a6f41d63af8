/** Links and their addresses, in the words of ip. */

import { hostCIDR } from "@fairlead/base";
import { checkCIDR, checkInterface } from "./rule/values.ts";

/** A change of a dummy device, or of an address on a device: a netlink request, or one line of `ip -batch`. */
export type LinkCommand = DeviceCommand | AddressCommand;

/** A dummy device that comes or goes. */
export interface DeviceCommand {
  /** What is done. */
  readonly kind: "add-device" | "delete-device";
  /** The device's name, at most 15 characters. */
  readonly device: string;
}

/** An address that comes to a device or goes from it. */
export interface AddressCommand {
  /** What is done. */
  readonly kind: "add-address" | "delete-address";
  /** The device's name. */
  readonly device: string;
  /** A single host of either family, without a prefix length. */
  readonly address: string;
}

/**
 * One line for `ip -batch`, without its end.
 *
 * @throws RuleTextError for a device or an address that can't be written as one word
 */
export function renderLinkCommand(command: LinkCommand): string {
  const device = checkInterface(command.device);
  switch (command.kind) {
    case "add-device":
      return `link add dev ${device} type dummy`;
    case "delete-device":
      return `link del dev ${device}`;
    case "add-address":
    case "delete-address":
      return `addr ${command.kind === "add-address" ? "add" : "del"} ${checkCIDR(hostCIDR(command.address))} dev ${device}`;
  }
}
