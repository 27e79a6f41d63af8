import type { RequestOptions } from "node:https";
import type { AuthProvider, Credentials } from "@fairlead/watch";
import { KubeConfig } from "@kubernetes/client-node";

/**
 * Asks what `auth-provider` of a kubeconfig's user names, such as an OpenID Connect server. The one module that loads
 * the client library, itself loaded only when it is needed: the library takes more memory than all of the rest. It
 * keeps credentials until they expire.
 */
export function openAuthProvider(): AuthProvider {
  const opened = new Map<string, () => Promise<Credentials>>();
  return (file, context) => {
    const key = JSON.stringify([file, context]);
    const ask = opened.get(key) ?? once(configOf(file, context));
    opened.set(key, ask);
    return ask();
  };
}

/** @throws Error when the file cannot be read */
function configOf(file: string, context: string): KubeConfig {
  const config = new KubeConfig();
  config.loadFromFile(file);
  config.setCurrentContext(context);
  return config;
}

/** Several watches begin at once: one question is enough for them. */
function once(config: KubeConfig): () => Promise<Credentials> {
  let asking: Promise<Credentials> | undefined;
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
