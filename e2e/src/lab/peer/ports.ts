/** Nobody listens on these. */
const FIRST = 33_000;
const LAST = 60_999;

let next = FIRST;

/**
 * A source port that this peer has not used for a long while. Left to itself the kernel may take one again for another
 * address, and where two frontends have one endpoint the connections are the same but for the frontend: connection tracking
 * then changes a port, which looks like masquerading, and ip_vs takes the one's answer for the other's.
 */
export function sourcePort(): number {
  const port = next;
  next = port === LAST ? FIRST : port + 1;
  return port;
}
