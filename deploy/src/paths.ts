import { fileURLToPath } from "node:url";

/** Absolute paths, without a slash at the end. */
const at = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url)).replace(/\/$/, "");

export const repositoryDir = at("");
export const deployDir = at("deploy");
export const agentDir = at("apps/agent");
export const cliDir = at("apps/cli");
/** What is built ends here; git ignores it. */
export const artifactsDir = at("artifacts");
