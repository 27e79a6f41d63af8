import { readFile, writeFile } from "node:fs/promises";
import type { Server } from "node:http";
import { createServer, type ServerOptions } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { TLSSocket } from "node:tls";
import { tlsFolder } from "@fairlead/testkit/api-server";
import { stringify } from "yaml";
import { later, temporaryFolder } from "./fake-api.ts";

export const pem = (name: string) => readFile(join(tlsFolder, name), "utf8");
export const base64 = async (name: string) => Buffer.from(await pem(name)).toString("base64");

/** A file in a folder of its own. */
export async function kubeconfig(cluster: object, user: object, more: object = {}): Promise<string> {
  const file = join(await temporaryFolder(), "kubeconfig.conf");
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "default", cluster }],
    users: [{ name: "default", user }],
    contexts: [{ name: "default", context: { cluster: "default", user: "default" } }],
    "current-context": "default",
    ...more,
  };
  await writeFile(file, stringify(config));
  return file;
}

/** @returns its port; it is closed after the test */
export async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  later(async () => {
    server.closeAllConnections();
    server.close();
  });
  // The address of a listening TCP server is always an AddressInfo.
  return (server.address() as AddressInfo).port;
}

/** PEM key and certificate for 127.0.0.1, of ca.pem. */
export async function serverTls(): Promise<{ readonly key: string; readonly cert: string }> {
  return { key: await pem("server-key.pem"), cert: await pem("server.pem") };
}

/** Answers with who asks. */
export async function httpsServer(options: ServerOptions = {}): Promise<number> {
  return listening(
    createServer({ ...(await serverTls()), ...options }, ({ socket, headers }, response) => {
      const peer = (socket as TLSSocket).getPeerCertificate();
      response.end(JSON.stringify({ client: peer.subject?.CN, authorization: headers.authorization }));
    }),
  );
}
