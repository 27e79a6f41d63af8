import { socketText } from "@fairlead/base";
import { type Hex, PROTOCOLS } from "@fairlead/netfilter/nft";

/** Something that packets can be sent to. */
export interface Destination {
  /** tcp, udp or sctp */
  readonly protocol: string;
  /** Canonical address; absent: a port of the node. */
  readonly address?: string;
  readonly port: number;
}

/** `tcp 10.96.0.10:80`, `tcp [fd00::10]:80`, `tcp node port 30080` */
export function destinationText({ protocol, address, port }: Destination): string {
  if (address === undefined) return `${protocol} node port ${port}`;
  return `${protocol} ${socketText(address, port)}`;
}

/** The name of an IP protocol by its number, one byte; the number where it has no name. */
export function protocolText(hex: Hex): string {
  const number = Number.parseInt(hex, 16);
  return Object.entries(PROTOCOLS).find(([, known]) => known === number)?.[0] ?? String(number);
}
