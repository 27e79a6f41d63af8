import { Attributes } from "@fairlead/netfilter/netlink";
import { dump } from "../netlink/dump.ts";
import type { NetlinkSocket } from "../netlink/socket.ts";

/** Decodes each object of a listing as it comes, so that nothing large is left to be done at once. */
export async function listing<T>(
  socket: NetlinkSocket,
  request: Buffer,
  what: string,
  decode: (of: Attributes) => readonly T[],
): Promise<readonly T[]> {
  const all: T[] = [];
  await dump(socket, request, what, (bytes, message) => {
    for (const one of decode(attributes(bytes, message))) all.push(one);
  });
  return all;
}

export function attributes(
  bytes: Buffer,
  { start, end }: { readonly start: number; readonly end: number },
): Attributes {
  return new Attributes(bytes, start, end);
}
