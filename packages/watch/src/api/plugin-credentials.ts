import type { RequestOptions } from "node:https";
import { KubeConfig } from "@kubernetes/client-node";
import type { Credentials } from "./connection.ts";

/**
 * Credentials of what asks other servers: `auth-provider` of a kubeconfig's user, by the client library. The one module
 * that loads it, itself loaded only when it is needed: the library takes more memory than all of the rest.
 *
 * @returns reads the credentials; the library keeps them until they expire
 * @throws Error when the file cannot be read
 */
export function pluginCredentials(file: string): () => Promise<Credentials> {
  const config = new KubeConfig();
  config.loadFromFile(file);
  const [only] = config.getContexts();
  if (config.getCurrentContext() === "" && only !== undefined) config.setCurrentContext(only.name);
  let asking: Promise<Credentials> | undefined;
  // Several watches begin at once: one question is enough for them.
  return () => {
    asking ??= ask(config).finally(() => {
      asking = undefined;
    });
    return asking;
  };
}

async function ask(config: KubeConfig): Promise<Credentials> {
  const options: RequestOptions = {};
  await config.applyToHTTPSOptions(options);
  const { headers = {}, cert, key } = options;
  const { Authorization: authorization } = Object.fromEntries(Object.entries(headers));
  return {
    headers: typeof authorization === "string" ? { authorization } : {},
    tls: { ...(cert === undefined ? {} : { cert: String(cert) }), ...(key === undefined ? {} : { key: String(key) }) },
  };
}
