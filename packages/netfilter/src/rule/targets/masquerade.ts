import { typedOptions } from "../options.ts";
import type { TargetKind } from "./kind.ts";
import { type PortsAndRandom, portsAndRandom, renderPortsAndRandom } from "./ports.ts";

export interface MasqueradeTarget extends PortsAndRandom {
  readonly kind: "masquerade";
  readonly randomFully?: boolean;
}

export const masquerade: TargetKind<MasqueradeTarget> = {
  name: "MASQUERADE",
  options: { "--to-ports": 1, "--random": 0, "--random-fully": 0 },
  parse(raw) {
    const options = typedOptions(raw, ["--to-ports", "--random", "--random-fully"]);
    if (options === undefined) return undefined;
    const fully = options.has("--random-fully") ? { randomFully: true } : {};
    return { kind: "masquerade", ...portsAndRandom(options), ...fully };
  },
  render: (target) => `${renderPortsAndRandom(target)}${target.randomFully === true ? " --random-fully" : ""}`,
};
