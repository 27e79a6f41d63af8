import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { apiConnection } from "../src/inputs/cluster-access.ts";

/** A token of OpenID Connect that is good for long. */
function idToken(subject: string): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  return `${part({ alg: "none" })}.${part({ exp: 8.64e12, sub: subject })}.x`;
}

test("auth-provider oidc: the token of the context that is asked for, while it is good", async () => {
  const folder = await mkdtemp(join(tmpdir(), "fairlead-"));
  try {
    const names = ["one", "two"];
    const provider = (name: string) => ({
      name: "oidc",
      config: { "id-token": idToken(name), "client-id": "c", "idp-issuer-url": "https://y" },
    });
    const kubeconfig = join(folder, "config");
    const config = {
      "current-context": "one",
      clusters: names.map((name) => ({ name, cluster: { server: `https://${name}.example` } })),
      users: names.map((name) => ({ name, user: { "auth-provider": provider(name) } })),
      contexts: names.map((name) => ({ name, context: { cluster: name, user: name } })),
    };
    await writeFile(kubeconfig, JSON.stringify(config));
    for (const context of names) {
      const { credentials } = await apiConnection({ kubeconfig, context }, { env: {}, warn: () => {} });
      const [first, second] = await Promise.all([credentials(), credentials()]);
      expect(first).toEqual({ headers: { authorization: `Bearer ${idToken(context)}` }, tls: {} });
      expect(second).toEqual(first);
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});
