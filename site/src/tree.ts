import { globSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { repositoryDir } from "./paths.ts";
import type { Tree } from "./text/links.ts";

/** The repository as it is on disk. */
export const repository: Tree = {
  kind(path) {
    const found = statSync(join(repositoryDir, path), { throwIfNoEntry: false });
    if (found === undefined) return undefined;
    return found.isDirectory() ? "folder" : "file";
  },
  text: (path) => readFileSync(join(repositoryDir, path), "utf8"),
};

/** All Markdown files of docs/, sorted. */
export const documents: readonly string[] = globSync("docs/**/*.md", { cwd: repositoryDir }).sort();
