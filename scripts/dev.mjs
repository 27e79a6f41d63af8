// `pnpm dev`: the agent from its sources, begun again when one of them changes, with a debugger on 127.0.0.1:9229. Plain
// JavaScript without dependencies, as the other scripts.
import { join } from "node:path";
import { ended, root, start, tool } from "./steps.mjs";

/** Services on local ports: needs no root and writes no rule. */
const HARMLESS = ["--proxy-mode=userspace", "--userspace-only", `--manifests=${join(root, "scripts/dev")}`];

const args = process.argv.slice(2).filter((arg) => arg !== "--");
const [node] = tool("node");
const options = ["--watch", `--import=${join(root, "scripts/debugger.mjs")}`, "--no-warnings"];
const main = ["--conditions=@fairlead/source", join(root, "apps/agent/src/main.ts")];
process.exitCode =
  (await ended(start([node, ...options, ...main, ...(args.length > 0 ? args : HARMLESS)], "inherit"))) ?? 1;
