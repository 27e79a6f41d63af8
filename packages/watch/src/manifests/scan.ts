import { readdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { errorText } from "../raw.ts";

/** What is at the manifest path now. */
export type Scan =
  /** Files in the order of their names, each with a text that changes when its content may have. */
  | { readonly type: "files"; readonly isFolder: boolean; readonly files: ReadonlyMap<string, string> }
  /** No such file in an existing folder. */
  | { readonly type: "noFile"; readonly error: string }
  /** Neither it nor its folder, or no permission. */
  | { readonly type: "unreadable"; readonly error: string };

/** Never rejects. Links are followed, so that a ConfigMap's swapped `..data` folder shows as changed files. */
export async function scan(path: string): Promise<Scan> {
  try {
    const found = await stat(path, { bigint: true });
    if (!found.isDirectory()) return { type: "files", isFolder: false, files: new Map([[path, signature(found)]]) };
    return { type: "files", isFolder: true, files: await filesIn(path) };
  } catch (error) {
    const parentIsThere = await stat(dirname(path)).then(
      () => true,
      () => false,
    );
    const missing = parentIsThere && error instanceof Error && "code" in error && error.code === "ENOENT";
    return { type: missing ? "noFile" : "unreadable", error: errorText(error) };
  }
}

/** Of one file; undefined when it is not there or not a file. */
export async function signatureOf(file: string): Promise<string | undefined> {
  try {
    const found = await stat(file, { bigint: true });
    return found.isFile() ? signature(found) : undefined;
  } catch (error) {
    // It may be there without being accessible: reading it will say so.
    return error instanceof Error && "code" in error && error.code === "ENOENT" ? undefined : errorText(error);
  }
}

async function filesIn(folder: string): Promise<ReadonlyMap<string, string>> {
  const files = new Map<string, string>();
  for (const name of (await readdir(folder)).filter(isManifestName).sort()) {
    const file = join(folder, name);
    const is = await signatureOf(file);
    if (is !== undefined) files.set(file, is);
  }
  return files;
}

/** Hidden files are editors' and ConfigMaps' own business. */
function isManifestName(name: string): boolean {
  return !name.startsWith(".") && /\.(ya?ml|json)$/.test(name);
}

function signature(stats: { ino: bigint; size: bigint; mtimeNs: bigint; ctimeNs: bigint }): string {
  return `${stats.ino}/${stats.size}/${stats.mtimeNs}/${stats.ctimeNs}`;
}
