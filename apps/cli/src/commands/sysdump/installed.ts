import type { Context } from "../../frame/context.ts";
import { CommandFailure } from "../../frame/errors.ts";
import { configurationOf } from "../../inputs/configuration.ts";
import type { ClusterValues } from "../../inputs/planned.ts";
import { PATHS } from "../../sysdump/dump.ts";
import { keptPage } from "../../sysdump/kept-node.ts";

/**
 * The configuration of a node whose proxy does not serve it, as it is installed with or as the options say, in the form
 * of the page that is missing. None: it serves it, or nothing is known.
 */
export async function installedPages(
  node: string,
  files: ReadonlyMap<string, string>,
  options: ClusterValues & { readonly live: boolean },
  context: Context,
): Promise<ReadonlyMap<string, string>> {
  const path = (page: string) => PATHS.page(node, page);
  if (files.size === 0 || files.has(path("/configz"))) return new Map();
  const quiet: Context = { ...context, warn: () => {}, progress: (_what, work) => work() };
  const wanted = options.live ? { here: true } : { on: node };
  try {
    const { setup } = await configurationOf(options, wanted, quiet, { anyMode: true });
    const { kubeProxyConfiguration, fairleadConfiguration } = setup.config;
    const answer = { "kubeproxy.config.k8s.io": kubeProxyConfiguration, "fairlead.dev": fairleadConfiguration };
    const kept = keptPage("/configz", JSON.stringify(answer));
    return kept === undefined
      ? new Map()
      : new Map([
          [path("/configz"), kept],
          [path("/proxyMode"), setup.config.mode],
        ]);
  } catch (error) {
    if (error instanceof CommandFailure) return new Map();
    throw error;
  }
}
