import { join } from "node:path";
import { Application, type Context, Converter, type TypeDocOptions } from "typedoc";
import { publishedLibraries } from "../packages.ts";
import { repositoryDir, siteDir } from "../paths.ts";
import { PACKAGES, SECTIONS } from "../sections.ts";
import { uncommented } from "./commented.ts";
import { Pages, SiteRouter } from "./pages.ts";

function options(outDir: string): TypeDocOptions {
  const libraries = publishedLibraries();
  return {
    name: "Fairlead",
    readme: "none",
    entryPoints: libraries.flatMap(({ entries }) => [...entries.values()].map((file) => join(repositoryDir, file))),
    tsconfig: join(siteDir, "tsconfig.api.json"),
    // `pnpm typecheck` does that, with the compiler that the project uses.
    skipErrorChecking: true,
    excludePrivate: true,
    excludeExternals: true,
    excludeInternal: true,
    out: outDir,
    router: "site",
    categorizeByGroup: false,
    categoryOrder: SECTIONS.map(({ title }) => title),
    defaultCategory: PACKAGES,
    navigation: { includeCategories: true, includeGroups: false, includeFolders: false, excludeReferences: true },
    searchInDocuments: true,
    searchInComments: true,
    disableGit: true,
    sourceLinkTemplate: "https://github.com/fairlead-dev/fairlead/blob/main/{path}#L{line}",
    basePath: repositoryDir,
    displayBasePath: repositoryDir,
    navigationLinks: { GitHub: "https://github.com/fairlead-dev/fairlead" },
    favicon: join(repositoryDir, "docs/icon.svg"),
    customCss: join(siteDir, "src/build/site.css"),
    customJs: join(siteDir, "src/build/site.js"),
    highlightLanguages: ["typescript", "shellscript", "yaml", "json", "jsonc", "console", "diff", "docker", "toml"],
    ignoredHighlightLanguages: ["mermaid", "text", "promql"],
    validation: { notExported: false, invalidLink: true, invalidPath: true, rewrittenLink: true },
  };
}

/**
 * Docs, READMEs and the reference of the packages as pages.
 *
 * @param outDir absolute; what it contained goes
 * @returns false where something is wrong, which is on stderr: a dead link, an export without a comment
 */
export async function writePages(outDir: string): Promise<boolean> {
  const app = await Application.bootstrap(options(outDir));
  const pages = new Pages();
  app.renderer.defineRouter("site", SiteRouter);
  app.converter.on(Converter.EVENT_BEGIN, ({ project }: Context) => pages.addDocuments(app, project));
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }: Context) => pages.nameModules(app, project));
  const project = await app.convert();
  if (project === undefined) return false;
  app.validate(project);
  const packages = new Set(publishedLibraries().map(({ name }) => name));
  for (const problem of uncommented(project, packages)) app.logger.warn(problem);
  await app.generateOutputs(project);
  return !app.logger.hasErrors() && !app.logger.hasWarnings();
}
