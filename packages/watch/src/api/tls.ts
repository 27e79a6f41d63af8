/** The part of node:tls' options that a kubeconfig sets. */
export interface TlsOptions {
  /** PEM bundle that the server's certificate must lead to; absent: the system's. */
  readonly ca?: string;
  /** PEM client certificate (chain) and key. */
  readonly cert?: string;
  /** PEM private key of `cert`. */
  readonly key?: string;
  /** tls-server-name: the name to expect instead of the URL's host. */
  readonly servername?: string;
  /** false only for insecure-skip-tls-verify. */
  readonly rejectUnauthorized?: boolean;
}
