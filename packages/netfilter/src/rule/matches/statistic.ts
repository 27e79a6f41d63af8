import { RuleTextError } from "../errors.ts";
import { statisticProbability } from "../numbers.ts";
import { typedOptions } from "../options.ts";
import { Problem } from "../problem.ts";
import type { MatchKind } from "./kind.ts";

export interface StatisticMatch {
  readonly kind: "statistic";
  readonly mode: "random";
  /** As the kernel gives it back, see `statisticProbability`. */
  readonly probability: string;
}

export const statistic: MatchKind<StatisticMatch> = {
  modules: ["statistic"],
  options: { "--mode": 1, "--probability": 1, "--every": 1, "--packet": 1 },
  parse(raw) {
    const options = typedOptions(raw, ["--mode", "--probability"]);
    const probability = options?.get("--probability");
    if (probability === undefined || probability.negated || options?.get("--mode")?.values[0] !== "random") {
      return undefined;
    }
    const value = Number(probability.values[0]);
    if (!(value >= 0 && value <= 1)) {
      throw new Problem(`probability "${probability.values[0]}" is not a number from 0 to 1`);
    }
    return { kind: "statistic", mode: "random", probability: statisticProbability(value) };
  },
  render({ probability }) {
    if (!/^(?:0|1)(?:\.\d+)?$/.test(probability)) {
      throw new RuleTextError("probability", probability, "must be a decimal from 0 to 1");
    }
    return ` -m statistic --mode random --probability ${probability}`;
  },
};
