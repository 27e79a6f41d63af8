import { fileURLToPath } from "node:url";

const at = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url)).replace(/\/$/, "");

/** Absolute, without a slash at the end. */
export const repositoryDir = at("");
export const siteDir = at("site");
/** What `pnpm site` builds; git ignores it. */
export const outDir = at("site/dist");
