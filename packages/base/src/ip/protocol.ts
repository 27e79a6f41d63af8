import { isAbsent } from "../json.ts";

/** The transport protocols that a Service port can have (core/v1 Protocol). */
export type Protocol = "TCP" | "UDP" | "SCTP";

/** What is kept is one of these, not the text of each object. */
const PROTOCOLS: readonly Protocol[] = ["TCP", "UDP", "SCTP"];

/** A protocol in untrusted JSON; absent means TCP, as in the API. @returns undefined for other values */
export function protocolOf(value: unknown): Protocol | undefined {
  if (isAbsent(value) || value === "") return "TCP";
  return PROTOCOLS.find((protocol) => protocol === value);
}

/** A port of a service or an endpoint in untrusted JSON. */
export function isPort(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= 65_535;
}
