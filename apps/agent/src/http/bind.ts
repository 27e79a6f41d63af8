import { type Clock, errorChainText, socketText } from "@fairlead/base";
import type { SocketAddress } from "@fairlead/config";
import type { Log } from "../log/log.ts";
import type { App } from "./app.ts";
import type { ConnectionLimit } from "./connection-limit.ts";
import { type Listener, listenWhenFree } from "./listen.ts";

/** Milliseconds between attempts to take an address that is in use, as upstream. */
const RETRY_MS = 5_000;

/** The agent's own servers, by what log lines call them. */
export type ServerName = "health" | "metrics";

export interface BindOptions {
  readonly name: ServerName;
  readonly at: SocketAddress;
  /** bindAddressHardFail: it is not tried again. */
  readonly hardFail: boolean;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
  readonly limit: ConnectionLimit;
  /** Called for each failed attempt, in words that name the server and its address. */
  readonly onFailure: (server: ServerName, reason: string) => void;
}

/** Serves an app on the agent's own address, and tries again while that is in use. */
export async function bind(app: App, options: BindOptions): Promise<Listener | undefined> {
  const { name, at, hardFail, clock, log, signal, limit } = options;
  const address = socketText(at.address, at.port);
  const onError = (error: unknown): boolean => {
    const what = errorChainText(error);
    options.onFailure(name, `the ${name} server cannot listen on ${address}: ${what}`);
    if (!hardFail)
      log.error("Server cannot listen; its clients get no answer, retrying", { server: name, address, error: what });
    return hardFail;
  };
  const listener = await listenWhenFree(
    app,
    { host: at.address, port: at.port },
    { clock, every: RETRY_MS, signal, onError, limit },
  );
  if (listener !== undefined) log.verbose(2, "Listening", { server: name, address });
  return listener;
}
