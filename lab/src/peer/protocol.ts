/** What the processes inside the namespaces say to the one outside: JSON, a line each way for every request. */

export interface ListenPorts {
  readonly tcp: readonly number[];
  readonly udp: readonly number[];
}

/** Given to a peer as its one argument. */
export interface PeerSettings {
  readonly name: string;
  readonly listen: ListenPorts;
}

export interface Probe {
  readonly protocol: "TCP" | "UDP";
  readonly to: string;
  readonly port: number;
  /** Address to send from; absent: the kernel chooses. */
  readonly source?: string;
  /**
   * Port to send from: over UDP several probes are one flow to the kernel then. Absent: another one for each request.
   */
  readonly sourcePort?: number;
  /** TCP: bytes of padding to ask the server for, alongside its answer. Default none. */
  readonly padding?: number;
  /** Connections and sockets stay open for as long as the peer runs. Default false. */
  readonly hold?: boolean;
  /** How many requests, each on a connection or socket of its own. */
  readonly count: number;
  /** How many at once. */
  readonly parallel: number;
  /** Until a request counts as lost. */
  readonly timeoutMs: number;
}

/** What a server says about the request it got. Addresses are canonical, `a.b.c.d:port` or `[v6]:port`. */
export interface Answer {
  /** The server's name. */
  readonly server: string;
  /** Where the request arrived. */
  readonly local: string;
  /** The sender that the server sees. */
  readonly remote: string;
}

/** The path of a request for so many bytes of padding. */
export function paddingPath(bytes: number): string {
  return `/?padding=${bytes}`;
}

/** What came of one request. `at`: when that was known, in milliseconds since the epoch, with fractions. */
export type ProbeResult = { readonly at: number; readonly ms: number } & Ending;

export type Ending =
  | ({ readonly kind: "answer"; readonly sender: string; readonly padding?: number } & Answer)
  | { readonly kind: "refused" }
  | { readonly kind: "lost" }
  | { readonly kind: "error"; readonly code: string };

export interface PeerRequest {
  readonly id: number;
  readonly probe: Probe;
}

export type PeerReply =
  | { readonly id: number; readonly results: readonly ProbeResult[] }
  | { readonly id: number; readonly failure: string };

/** `10.0.0.1:80`, `[fd00::1]:80`; an IPv4 address that a dual-stack socket shows as IPv6 becomes IPv4 again. */
export function endpointText(address = "", port = 0): string {
  const plain = address.startsWith("::ffff:") ? address.slice("::ffff:".length) : address;
  return plain.includes(":") ? `[${plain}]:${port}` : `${plain}:${port}`;
}

export function codeOf(error: unknown): string {
  if (error instanceof Error) return "code" in error && typeof error.code === "string" ? error.code : error.message;
  return String(error);
}
