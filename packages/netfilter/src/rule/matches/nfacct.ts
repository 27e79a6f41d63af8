import { checkName } from "../check.ts";
import { singleOption } from "../options.ts";
import type { MatchKind } from "./kind.ts";

/** Counts in a named object. */
export interface NfacctMatch {
  readonly kind: "nfacct";
  readonly name: string;
}

export const nfacct: MatchKind<NfacctMatch> = {
  modules: ["nfacct"],
  options: { "--nfacct-name": 1 },
  parse(raw) {
    const option = singleOption(raw, "--nfacct-name");
    return option === undefined || option.negated ? undefined : { kind: "nfacct", name: option.values[0] ?? "" };
  },
  // Two spaces: iptables-save prints them.
  render: ({ name }) => ` -m nfacct --nfacct-name  ${checkName("nfacct", name)}`,
};
