/** What is counted, and how often: so much that one more makes no difference. */
export const UNITS = {
  connect: { what: "new connection with one request", times: 200 },
  query: { what: "UDP packet from a new port, and its answer", times: 300 },
  request: { what: "request over an open connection", times: 300 },
  datagram: { what: "UDP packet", times: 3_200 },
  stream: { what: "megabyte in pieces of 64 kB", times: 10 },
  packets: { what: "megabyte in packets of 1500 bytes", times: 10 },
} as const;

export type Unit = keyof typeof UNITS;

// The keys are what it was written with.
export const ALL_UNITS = Object.keys(UNITS) as Unit[];

/** The unit for what a flowtable adds to a new flow is left out. */
export const OTHER_MODES_UNITS = ALL_UNITS.filter((unit) => unit !== "query");

/** A change of one endpoint, which is not a packet. */
export const CHANGE = "change";

/** Whose rules packets meet. */
export const SUBJECTS = {
  base: "kube-proxy",
  own: "Fairlead",
  fast: "Fairlead with the fast path",
  /** With the option, a service that asks to be left out. */
  excepted: "Fairlead with the fast path, excepted service",
} as const;
