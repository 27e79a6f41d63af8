import { isAbsent, type Protocol } from "@fairlead/base";

const PROTOCOLS: readonly Protocol[] = ["TCP", "UDP", "SCTP"];

/** Absent means TCP, as in the API. @returns undefined for what is not a protocol of Services */
export function protocolOf(value: unknown): Protocol | undefined {
  if (isAbsent(value) || value === "") return "TCP";
  return PROTOCOLS.find((protocol) => protocol === value);
}

export function isPort(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= 65_535;
}
