import { generateKeyPairSync } from "node:crypto";

/**
 * Who may talk to the API server, by token. The proxy has what kube-proxy's user has: ClusterRole system:node-proxier;
 * `slices` has what a spec gives it.
 */
export const USERS = {
  admin: { token: "test-ground-admin", name: "admin", groups: "system:masters" },
  slices: { token: "test-ground-slices", name: "fairlead-slices", groups: "" },
  proxy: { token: "test-ground-proxy", name: "system:kube-proxy", groups: "" },
} as const;

/** For `--token-auth-file`. */
export function tokenFile(): string {
  return Object.values(USERS)
    .map(({ token, name, groups }) => `${token},${name},${name}${groups === "" ? "" : `,"${groups}"`}\n`)
    .join("");
}

export interface KubeconfigFields {
  readonly server: string;
  /** Absent where there is no TLS, or nothing looks at the certificate. */
  readonly caFile?: string;
  /** Absent: what is in front of the server has one. */
  readonly token?: string;
  readonly proxyUrl?: string;
}

/** JSON is YAML. Without a CA a server's certificate is not looked at. */
export function kubeconfig({ server, caFile, token, proxyUrl }: KubeconfigFields): string {
  const unseen = server.startsWith("https:") ? { "insecure-skip-tls-verify": true } : {};
  const trust = caFile === undefined ? unseen : { "certificate-authority": caFile };
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [
      { name: "test", cluster: { server, ...trust, ...(proxyUrl !== undefined && { "proxy-url": proxyUrl }) } },
    ],
    users: [{ name: "user", user: token === undefined ? {} : { token } }],
    contexts: [{ name: "test", context: { cluster: "test", user: "user" } }],
    "current-context": "test",
  });
}

/** Keys that service accounts' tokens would be signed with; nothing asks for one here. */
export function serviceAccountKeys(): { readonly key: string; readonly pub: string } {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  return {
    key: privateKey.export({ type: "pkcs1", format: "pem" }).toString(),
    pub: publicKey.export({ type: "spki", format: "pem" }).toString(),
  };
}
