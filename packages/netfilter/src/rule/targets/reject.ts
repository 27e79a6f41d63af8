import { checkValue } from "../check.ts";
import { typedOptions } from "../options.ts";
import type { IPFamily } from "../values.ts";
import type { TargetKind } from "./kind.ts";

export interface RejectTarget {
  readonly kind: "reject";
  readonly with: string;
}

const DEFAULTS: Readonly<Record<IPFamily, string>> = {
  IPv4: "icmp-port-unreachable",
  IPv6: "icmp6-port-unreachable",
};

export const reject: TargetKind<RejectTarget> = {
  name: "REJECT",
  options: { "--reject-with": 1 },
  parse(raw, family) {
    const options = typedOptions(raw, ["--reject-with"]);
    if (options === undefined) return undefined;
    return { kind: "reject", with: options.get("--reject-with")?.values[0] ?? DEFAULTS[family] };
  },
  render: (target) => ` --reject-with ${checkValue("reject type", target.with)}`,
};
