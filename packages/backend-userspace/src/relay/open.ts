import type { OpenRelay, RelayRequest } from "./relay.ts";
import { openTcpRelay } from "./tcp-relay.ts";
import { openUdpRelay } from "./udp-relay.ts";

/** @throws an Error with the code of `bind` or `listen`, EADDRINUSE where the port is taken */
export function openRelay(request: RelayRequest): Promise<OpenRelay> {
  return request.protocol === "TCP" ? openTcpRelay(request) : openUdpRelay(request);
}
