import { addressHex, portHex } from "@fairlead/netfilter/nft";
import type { PacketEnd, Walk } from "../../walk.ts";
import type { Evaluate } from "./kind.ts";

/** Where the addresses are in the header. */
const ADDRESSES = { IPv4: { source: 12, destination: 16 }, IPv6: { source: 8, destination: 24 } } as const;

/** Addresses and ports are known of a packet, of the first of a connection TCP's flags, and nothing else. */
export const payload: Evaluate<"payload"> = ({ base, offset, length, to }, { walk, registers }) => {
  const header = base === "network" ? networkHeader(walk) : transportHeader(walk);
  const bytes = header.slice(2 * offset, 2 * (offset + length)).padEnd(2 * length, "?");
  registers.load(to, bytes);
  if (bytes.includes("?"))
    registers.reason = `bytes ${offset} to ${offset + length - 1} of its ${base} header are not known`;
  return undefined;
};

function networkHeader({ family, source, destination }: Walk): string {
  const { source: at } = ADDRESSES[family];
  return `${"?".repeat(2 * at)}${addressHex(source.address)}${addressHex(destination.address)}`;
}

/** Sequence numbers and the header's length are between the ports and the flags. */
function transportHeader({ source, destination, protocol, state }: Walk): string {
  const ports = portDigits(source) + portDigits(destination);
  return protocol === "tcp" && state === "NEW" ? ports + "?".repeat(18) + SYN : ports;
}

const SYN = "02";

function portDigits({ port }: PacketEnd): string {
  return port === undefined ? "????" : portHex(port);
}
