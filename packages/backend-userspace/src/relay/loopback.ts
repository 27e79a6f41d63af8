import type { IPFamily } from "@fairlead/core";

export const LOOPBACK: Readonly<Record<IPFamily, string>> = { IPv4: "127.0.0.1", IPv6: "::1" };
