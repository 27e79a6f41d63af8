import { errorText } from "@fairlead/base";
import { type Flow, type Relays, readRelays } from "@fairlead/inspect";
import type { Context } from "../../frame/context.ts";
import { agentAddressOf, askAgent } from "../../node/agent-endpoint.ts";

/** Milliseconds for which what the agent said is used again: --follow would ask for each connection. */
const FRESH_MS = 1_000;

/** Whether what answers may be a relay: it has an address of the node, and is no endpoint. */
export function mayBeRelayed(nodeAddresses: ReadonlySet<string>): (flow: Flow) => boolean {
  return ({ endpoint }) => endpoint?.condition === "gone" && nodeAddresses.has(endpoint.address);
}

/** Asks the node's agent what it relays, in userspace mode; if it does not say, one warning says so. */
export function relaysOf(
  options: Parameters<typeof agentAddressOf>[0],
  context: Context,
): () => Promise<Relays | undefined> {
  let said: Promise<Relays | undefined> | undefined;
  let askedAt = 0;
  let warned = false;
  const ask = async () => {
    try {
      return readRelays(await askAgent("/relays", agentAddressOf(options), context));
    } catch (error) {
      if (!warned) context.warn(`in userspace mode some of (gone) may be the agent's own relays: ${errorText(error)}`);
      warned = true;
      return undefined;
    }
  };
  return () => {
    const now = performance.now();
    if (said !== undefined && now - askedAt < FRESH_MS) return said;
    askedAt = now;
    said = ask();
    return said;
  };
}
