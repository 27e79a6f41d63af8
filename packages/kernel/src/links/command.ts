interface OnDevice<Kind extends string> {
  readonly kind: Kind;
  readonly device: string;
}

interface OnAddress<Kind extends string> extends OnDevice<Kind> {
  readonly address: string;
  readonly prefixLength: number;
}

export type DeviceCommand = OnDevice<"add-device"> | OnDevice<"delete-device">;
export type AddressCommand = OnAddress<"add-address"> | OnAddress<"delete-address">;

/** A line for `ip -batch` that ipvs mode has use for. */
export type LinkCommand = DeviceCommand | AddressCommand;

const DEVICE = /^link (?:add dev (?<added>\S+) type dummy|del dev (?<deleted>\S+))$/;
const ADDRESS = /^addr (?<change>add|del) (?<address>[0-9a-f.:]+)\/(?<length>\d+) dev (?<device>\S+)$/;

/** @returns undefined for any other line */
export function parseLinkCommand(line: string): LinkCommand | undefined {
  const { added, deleted } = DEVICE.exec(line)?.groups ?? {};
  if (added !== undefined) return { kind: "add-device", device: added };
  if (deleted !== undefined) return { kind: "delete-device", device: deleted };
  const { change, address, length, device } = ADDRESS.exec(line)?.groups ?? {};
  if (address === undefined || device === undefined) return undefined;
  const kind = change === "add" ? "add-address" : "delete-address";
  return { kind, device, address, prefixLength: Number(length) };
}
