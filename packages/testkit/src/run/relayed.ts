import { type OutcomeShares, waysOf, wayTo } from "./ways.ts";

/** To which endpoint, `address:port`, a client is relayed that comes to a socket; undefined: nothing listens there. */
export type AskRelay = (socket: string, client: string) => string | undefined;

/** As many clients as make every share of up to six endpoints exact. */
const CLIENTS = 60;

/**
 * Ways that end at relays as ways to the endpoints behind them, which see the node as the sender.
 *
 * @param sticky a client's later packets go where its first one went; those that do not are ways of their own
 */
export function relayedWays(ways: OutcomeShares, ask: AskRelay, sticky: boolean): OutcomeShares {
  const ends = [...ways].flatMap(([way, probability]) => {
    if (ask(way, "somebody") === undefined) return [{ way, probability }];
    return Array.from({ length: CLIENTS }, (_, index) => {
      const client = `client ${index}`;
      const first = ask(way, client) ?? "nobody";
      const later = sticky ? (ask(way, client) ?? "nobody") : first;
      const end = later === first ? wayTo(first, true) : `${later} after ${first}`;
      return { way: end, probability: probability / CLIENTS };
    });
  });
  return waysOf(ends);
}
