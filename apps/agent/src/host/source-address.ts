import { createSocket } from "node:dgram";
import { isUnspecified } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";

/** Addresses for documentation (RFC 5737, RFC 3849): they follow the default route. */
const ELSEWHERE: Readonly<Record<IPFamily, { type: "udp4" | "udp6"; address: string }>> = {
  IPv4: { type: "udp4", address: "192.0.2.1" },
  IPv6: { type: "udp6", address: "2001:db8::1" },
};

/**
 * The address that the kernel would send from by its default route; undefined: there is no such route. Connecting a UDP
 * socket asks the routing table and sends nothing.
 */
export async function sourceAddress(family: IPFamily): Promise<string | undefined> {
  const { type, address } = ELSEWHERE[family];
  const socket = createSocket(type);
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  // `connect` calls back on failure, too; the events distinguish them.
  socket.once("error", () => resolve(undefined));
  socket.once("connect", () => resolve(socket.address().address));
  socket.connect(9, address);
  const found = await promise;
  socket.close();
  return found === undefined || isUnspecified(found) ? undefined : found;
}
