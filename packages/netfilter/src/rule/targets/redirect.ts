import { typedOptions } from "../options.ts";
import type { TargetKind } from "./kind.ts";
import { type PortsAndRandom, portsAndRandom, renderPortsAndRandom } from "./ports.ts";

export interface RedirectTarget extends PortsAndRandom {
  readonly kind: "redirect";
}

export const redirect: TargetKind<RedirectTarget> = {
  name: "REDIRECT",
  options: { "--to-ports": 1, "--random": 0 },
  parse(raw) {
    const options = typedOptions(raw, ["--to-ports", "--random"]);
    return options === undefined ? undefined : { kind: "redirect", ...portsAndRandom(options) };
  },
  render: renderPortsAndRandom,
};
