import type { TlsOptions } from "./tls.ts";

/** An API server and the way to identify oneself to it. Made by `loadConnection`. */
export interface ApiConnection {
  /** Base URL without a trailing slash, for example `https://192.0.2.10:6443`. */
  readonly server: string;
  /** Proxy to go through, from kubeconfig's proxy-url. */
  readonly proxyUrl?: string;
  /** Reads token, certificate and key files anew: they rotate. Called before each request. */
  readonly credentials: () => Promise<Credentials>;
}

/** What authenticates a request. */
export interface Credentials {
  /** Authorization and Impersonate-* headers; one with several values is a line for each. */
  readonly headers: Readonly<Record<string, string | string[]>>;
  /** Certificates for the connection. */
  readonly tls: TlsOptions;
}
