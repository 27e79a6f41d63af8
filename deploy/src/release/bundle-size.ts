import { gzipSync } from "node:zlib";
import { build } from "esbuild";

/** Of a package's whole export, with everything it imports. */
export interface BundleSize {
  readonly name: string;
  /** Bytes. */
  readonly minified: number;
  /** Bytes. */
  readonly gzipped: number;
}

export interface BundleOptions {
  /** Where imports are resolved from. */
  readonly resolveDir: string;
  readonly minify?: boolean;
  /** Of `exports` in package.json, in addition to a browser's. */
  readonly conditions?: readonly string[];
}

/** Names, without the scope, of the packages that docs/packages.md says run in any engine. */
export function anyEnginePackages(page: string): readonly string[] {
  return Array.from(page.matchAll(/^\| @fairlead\/([\w-]+) .*\| any engine +\|$/gm), ([, name = ""]) => name);
}

/**
 * A program as a bundler makes it for a browser.
 *
 * @throws Error when it needs a module of Node
 */
export async function bundleForBrowser(code: string, options: BundleOptions): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents: code, resolveDir: options.resolveDir, loader: "ts" },
    bundle: true,
    write: false,
    platform: "browser",
    format: "esm",
    minify: options.minify === true,
    conditions: [...(options.conditions ?? [])],
    logLevel: "silent",
  });
  return outputFiles[0]?.text ?? "";
}

/** @param resolveDir a project in which the package is installed */
export async function bundleSize(name: string, resolveDir: string): Promise<BundleSize> {
  const bundle = Buffer.from(
    await bundleForBrowser(`export * from ${JSON.stringify(name)};`, { resolveDir, minify: true }),
  );
  return { name, minified: bundle.length, gzipped: gzipSync(bundle, { level: 9 }).length };
}
