/** A change of a dummy device, or of an address on a device: a netlink request, or one line of `ip -batch`. */
export type LinkCommand = DeviceCommand | AddressCommand;

export interface DeviceCommand {
  readonly kind: "add-device" | "delete-device";
  readonly device: string;
}

export interface AddressCommand {
  readonly kind: "add-address" | "delete-address";
  readonly device: string;
  /** A single host of either family, without a prefix length. */
  readonly address: string;
}
