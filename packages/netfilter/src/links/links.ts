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
