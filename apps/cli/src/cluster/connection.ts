import type { RequestOptions } from "node:https";
import { type ApiConnection, ConnectionError } from "@fairlead/watch";
import type { Headers } from "./impersonation.ts";
import type { OpenKubeconfig } from "./kubeconfig.ts";

/**
 * The same cluster for lists and watches of Services, EndpointSlices and Nodes, which are not the library's.
 *
 * @throws ConnectionError for a proxy that those cannot go through
 */
export function connectionOf({ config, server, file }: OpenKubeconfig): ApiConnection {
  const proxyUrl = config.getCurrentCluster()?.proxyUrl;
  if (proxyUrl !== undefined && !/^https?:\/\//.test(proxyUrl)) {
    throw new ConnectionError(`${file}: proxy-url must be an http or https URL to read a cluster's services`);
  }
  return {
    server,
    ...(proxyUrl !== undefined && { proxyUrl }),
    credentials: async () => {
      const options: RequestOptions = {};
      await config.applyToHTTPSOptions(options);
      return { headers: headersOf(options), tls: tlsOf(options) };
    },
  };
}

function headersOf({ headers = {}, auth }: RequestOptions): Headers {
  const texts = Object.entries(headers).map(([name, value]) => {
    return [name.toLowerCase(), Array.isArray(value) ? value.map(String) : String(value)];
  });
  const basic = auth == null ? {} : { authorization: `Basic ${Buffer.from(auth).toString("base64")}` };
  return { ...basic, ...Object.fromEntries(texts) };
}

function tlsOf({ ca, cert, key, servername, rejectUnauthorized }: RequestOptions) {
  return {
    ...(ca != null && { ca: String(ca) }),
    ...(cert != null && { cert: String(cert) }),
    ...(key != null && { key: String(key) }),
    ...(servername !== undefined && { servername }),
    ...(rejectUnauthorized !== undefined && { rejectUnauthorized }),
  };
}
