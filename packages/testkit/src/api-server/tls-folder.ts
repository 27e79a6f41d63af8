import { fileURLToPath } from "node:url";

/** Keys and certificates in PEM: `ca`, `server` for 127.0.0.1 and kubernetes.test, `client`. */
export const tlsFolder = fileURLToPath(new URL("tls/", import.meta.url));
