import type { Range } from "@fairlead/netfilter/netlink";
import {
  addressHeaderIn,
  addressIn,
  type DeviceHeader,
  deviceIn,
  encodeAddressDump,
  encodeDeviceDump,
  indexIn,
} from "../links/messages.ts";
import { ADDRESS_FAMILIES } from "../netlink/address-families.ts";
import { list } from "../netlink/list.ts";
import type { NetlinkSocket } from "../netlink/socket.ts";
import type { NodeAddress } from "./addresses.ts";
import { IPVS_DEVICE } from "./change.ts";

/** Of rtnetlink(7), as `ip` names them; the others have numbers only. */
const SCOPES: Readonly<Record<number, string>> = { 0: "global", 200: "site", 253: "link", 254: "host", 255: "nowhere" };

/**
 * What `parseAddresses` makes of `ip -json address`, in the same order, without a process.
 *
 * @throws NetlinkError when the kernel refuses
 */
export async function readNodeAddresses(socket: NetlinkSocket): Promise<readonly NodeAddress[]> {
  const devices = await list(socket, encodeDeviceDump(), "reading devices", (bytes, message) => {
    const device = deviceIn(bytes, message);
    return device.name === IPVS_DEVICE ? [] : [[indexIn(bytes, message), device] as const];
  });
  const byIndex = new Map(devices);
  const addresses = await list(socket, encodeAddressDump(), "reading addresses", (bytes, message) => {
    const index = indexIn(bytes, message);
    const device = byIndex.get(index);
    const address = device && addressOn(device, bytes, message);
    return address === undefined ? [] : [{ index, address }];
  });
  const byDevice = Map.groupBy(addresses, ({ index }) => index);
  return [...byIndex.keys()].flatMap((index) => (byDevice.get(index) ?? []).map(({ address }) => address));
}

function addressOn({ name, up }: DeviceHeader, bytes: Buffer, message: Range): NodeAddress | undefined {
  const { addressFamily, prefixLength, scope } = addressHeaderIn(bytes, message);
  const address = addressIn(bytes, message);
  const family = FAMILIES.get(addressFamily);
  if (family === undefined || address === undefined) return undefined;
  return { family, address, prefixLength, interface: name, scope: SCOPES[scope] ?? String(scope), up };
}

const FAMILIES = new Map(
  (["IPv4", "IPv6"] as const).map((family) => [ADDRESS_FAMILIES[family] as number, family] as const),
);
