import { outputOption } from "../../output/output.ts";

export const versionOptions = { output: outputOption } as const;
