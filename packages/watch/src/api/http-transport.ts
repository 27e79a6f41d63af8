import type { Clock } from "@fairlead/base";
import type { ApiConnection } from "./connection.ts";
import { sendHttp } from "./http-send.ts";
import type { Transport } from "./transport.ts";

/** A watcher's requests over HTTP. */
export function httpTransport(connection: ApiConnection, userAgent: string, clock: Clock): Transport {
  return (request) => sendHttp(connection, userAgent, clock, request);
}
