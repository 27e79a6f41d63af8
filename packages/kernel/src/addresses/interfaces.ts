import type { NetworkInterfaceInfo } from "node:os";
import type { NodeAddress } from "./addresses.ts";
import { IPVS_DEVICE } from "./change.ts";

/** What `os.networkInterfaces()` gives. */
export type Interfaces = Readonly<Partial<Record<string, readonly NetworkInterfaceInfo[]>>>;

/** The addresses of the interfaces that are up, as the C library knows them: no process, but none of what is down. */
export function interfaceAddresses(interfaces: Interfaces): readonly NodeAddress[] {
  return Object.entries(interfaces).flatMap(([name, infos = []]) =>
    name === IPVS_DEVICE ? [] : infos.map((info) => addressOf(name, info)),
  );
}

function addressOf(name: string, { address, family, cidr, internal }: NetworkInterfaceInfo): NodeAddress {
  const whole = family === "IPv4" ? 32 : 128;
  return {
    family,
    address,
    prefixLength: Number(cidr?.split("/")[1] ?? whole),
    interface: name,
    scope: internal ? "host" : LINK_LOCAL.test(address) ? "link" : "global",
    up: true,
  };
}

/** fe80::/10 */
const LINK_LOCAL = /^fe[89ab]/i;
