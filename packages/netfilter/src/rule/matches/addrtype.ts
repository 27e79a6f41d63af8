import { checkValue } from "../check.ts";
import { negation, not, typedOptions } from "../options.ts";
import { Problem } from "../problem.ts";
import type { RawOption } from "../raw.ts";
import type { NameMatch } from "../values.ts";
import type { MatchKind } from "./kind.ts";

/** What the routing tables say of an address: LOCAL, UNICAST, … */
export interface AddrtypeMatch {
  readonly kind: "addrtype";
  readonly srcType?: NameMatch;
  readonly dstType?: NameMatch;
}

export const addrtype: MatchKind<AddrtypeMatch> = {
  modules: ["addrtype"],
  options: { "--src-type": 1, "--dst-type": 1, "--limit-iface-in": 0, "--limit-iface-out": 0 },
  parse(raw) {
    const options = typedOptions(raw, ["--src-type", "--dst-type"]);
    if (options === undefined) return undefined;
    if (options.size === 0) throw new Problem("-m addrtype needs --src-type or --dst-type");
    const [source, destination] = [options.get("--src-type"), options.get("--dst-type")];
    return { kind: "addrtype", ...typeField("srcType", source), ...typeField("dstType", destination) };
  },
  render: ({ srcType, dstType }) =>
    ` -m addrtype${renderType("--src-type", srcType)}${renderType("--dst-type", dstType)}`,
};

function typeField(field: "srcType" | "dstType", option: RawOption | undefined): { [key in typeof field]?: NameMatch } {
  return option === undefined ? {} : { [field]: { ...negation(option), value: option.values[0] ?? "" } };
}

function renderType(option: string, type: NameMatch | undefined): string {
  return type === undefined ? "" : `${not(type)} ${option} ${checkValue("address type", type.value)}`;
}
