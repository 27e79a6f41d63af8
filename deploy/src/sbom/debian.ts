import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

export interface DebianPackage {
  readonly name: string;
  readonly version: string;
  readonly architecture: string;
  /** Source package and, where it differs, its version: `glibc (2.36-9)`. */
  readonly source: string;
  readonly maintainer: string;
}

/** The packages of a root folder, from what record-packages.sh left there. */
export async function debianPackages(rootDir: string): Promise<DebianPackage[]> {
  const folder = join(rootDir, "var/lib/dpkg/status.d");
  const names = (await readdir(folder)).sort();
  return Promise.all(names.map(async (name) => parseControl(await readFile(join(folder, name), "utf8"))));
}

/** Reads a control stanza (deb-control(5)); of its fields only those of one line matter here. */
export function parseControl(text: string): DebianPackage {
  const fields = new Map<string, string>();
  for (const line of text.split("\n")) {
    const [, field, value] = /^([A-Za-z-]+): (.*)$/.exec(line) ?? [];
    if (field !== undefined && value !== undefined) fields.set(field, value);
  }
  const need = (field: string) => {
    const value = fields.get(field);
    if (value === undefined) throw new Error(`control data without ${field}`);
    return value;
  };
  const name = need("Package");
  return {
    name,
    version: need("Version"),
    architecture: need("Architecture"),
    source: fields.get("Source") ?? name,
    maintainer: need("Maintainer"),
  };
}
