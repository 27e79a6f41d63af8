import { clusterOptions } from "../../inputs/cluster-options.ts";
import { kernelOptions } from "../../inputs/node-options.ts";
import { outputOption } from "../../output/output.ts";

export const explainOptions = { ...clusterOptions, ...kernelOptions, output: outputOption } as const;
