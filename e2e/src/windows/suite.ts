/** `pnpm e2e --suite windows`: kube-proxy and the agent for Windows under Wine, with the same changes. */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { FOLLOWED_KUBERNETES, kubeProxyForWindows } from "@fairlead/lab/control-plane/programs";
import { whyNoWine } from "@fairlead/lab/wine/wine";
import { BUNDLE, provideNode, runInNamespace } from "./ground.ts";

const LACKING = 3;

/**
 * @param seed of the histories; default: a new one, which is printed
 * @returns an exit code
 */
export async function runWindowsSuite(seed: string | undefined, progress: (line: string) => void): Promise<number> {
  const missing =
    (await whyNoWine()) ?? (existsSync(join(BUNDLE, "main.js")) ? undefined : "build the agent first: pnpm build");
  if (missing !== undefined) {
    progress(missing);
    return LACKING;
  }
  const kubeProxy = await kubeProxyForWindows(FOLLOWED_KUBERNETES, progress);
  const node = await provideNode();
  const chosen = seed ?? String(Math.floor(Math.random() * 2 ** 31));
  return (await runInNamespace("suite-main.ts", [node, kubeProxy, chosen])) ? 0 : 1;
}
