import { mkdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const FOLDER = fileURLToPath(new URL("../../node_modules/.cache/uml-guest", import.meta.url));

/** Node starts slowly in the guest: what it compiled is kept from one boot to the next. For NODE_COMPILE_CACHE. */
export async function compileCache(): Promise<string> {
  await mkdir(FOLDER, { recursive: true });
  return FOLDER;
}
