import { checkInteger, checkValue } from "../check.ts";
import { canonicalCIDR } from "../cidr.ts";
import { parseUnsigned } from "../numbers.ts";
import { typedOptions } from "../options.ts";
import type { MatchKind } from "./kind.ts";

/** The connection belongs to that virtual server of IPVS (`-m ipvs --vproto --vaddr --vport`). */
export interface IpvsMatch {
  readonly kind: "ipvs";
  readonly protocol: "tcp" | "udp" | "sctp";
  /** Canonical address. */
  readonly address: string;
  readonly port: number;
}

const TYPED = { "--vproto": 1, "--vaddr": 1, "--vport": 1 } as const;
const NUMBERS = { tcp: 6, udp: 17, sctp: 132 } as const;

const PROTOCOLS: Readonly<Record<string, "tcp" | "udp" | "sctp">> = {
  "6": "tcp",
  "17": "udp",
  "132": "sctp",
  tcp: "tcp",
  udp: "udp",
  sctp: "sctp",
};

export const ipvs: MatchKind<IpvsMatch> = {
  modules: ["ipvs"],
  options: { ...TYPED, "--ipvs": 0, "--vdir": 1, "--vmethod": 1, "--vportctl": 1 },
  parse(raw) {
    const options = typedOptions(raw, Object.keys(TYPED));
    const protocol = PROTOCOLS[options?.get("--vproto")?.values[0] ?? ""];
    const [address, rest] = (options?.get("--vaddr")?.values[0] ?? "").split("/");
    const port = options?.get("--vport")?.values[0];
    if (protocol === undefined || address === undefined || address === "" || rest !== undefined || port === undefined) {
      return undefined;
    }
    if (raw.options.some((option) => option.negated)) return undefined;
    return { kind: "ipvs", protocol, address: hostAddress(address), port: parseUnsigned(port, 0xffff, "port") };
  },
  // In the order and with the numbers that iptables-save prints.
  render: ({ protocol, address, port }) =>
    ` -m ipvs --vproto ${NUMBERS[protocol]} --vaddr ${checkValue("address", address)} --vport ${checkInteger("port", port, 0xffff)}`,
};

function hostAddress(text: string): string {
  return canonicalCIDR(text).split("/")[0] ?? text;
}
