import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryDir } from "./paths.ts";

export interface PublishedPackage {
  /** `@fairlead/trace`. */
  readonly name: string;
  /** `packages/trace`. */
  readonly folder: string;
  /** What can be imported → its source: `@fairlead/netfilter/nft` → `packages/netfilter/src/nft/index.ts`. */
  readonly entries: ReadonlyMap<string, string>;
}

interface Manifest {
  readonly name: string;
  readonly private?: boolean;
  readonly exports: Readonly<Record<string, string | Readonly<Record<string, string>>>>;
}

/** The libraries that are published, by name: programs have no exports. */
export function publishedLibraries(): readonly PublishedPackage[] {
  return readdirSync(join(repositoryDir, "packages"))
    .sort()
    .flatMap((room) => {
      const folder = `packages/${room}`;
      const manifest: Manifest = JSON.parse(readFileSync(join(repositoryDir, folder, "package.json"), "utf8"));
      return manifest.private === true ? [] : [{ name: manifest.name, folder, entries: entriesOf(folder, manifest) }];
    });
}

function entriesOf(folder: string, { name, exports }: Manifest): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(exports).flatMap(([path, target]) => {
      const source = typeof target === "string" ? undefined : target["@fairlead/source"];
      return source === undefined ? [] : [[join(name, path), join(folder, source)]];
    }),
  );
}
