import { mkdtemp, rm } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { preview } from "vite";
import { buildSite } from "../../src/build/index.ts";

export interface BuiltSite extends AsyncDisposable {
  /** Whether nothing was wrong, such as a dead link. */
  readonly right: boolean;
  /** `http://127.0.0.1:PORT/` */
  readonly url: string;
}

/** The site as `pnpm site` builds it, in a folder of its own, served on this machine. */
export async function builtSite(): Promise<BuiltSite> {
  const folder = await mkdtemp(join(tmpdir(), "fairlead-site-"));
  const { right } = await buildSite(folder);
  const server = await preview({
    root: folder,
    configFile: false,
    logLevel: "error",
    build: { outDir: folder },
    preview: { host: "127.0.0.1", port: 0 },
  });
  const { port } = server.httpServer.address() as AddressInfo;
  return {
    right,
    url: `http://127.0.0.1:${port}/`,
    async [Symbol.asyncDispose]() {
      await server.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
