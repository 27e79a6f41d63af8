import { join } from "node:path";
import { Application, type Context, Converter, PageEvent, type TypeDocOptions } from "typedoc";
import { publishedLibraries } from "../packages.ts";
import { repositoryDir, siteDir } from "../paths.ts";
import { PACKAGES, sectionsOf } from "../sections.ts";
import { documents } from "../tree.ts";
import { uncommented } from "./commented.ts";
import { withLandmarks } from "./landmarks.ts";
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
    categoryOrder: sectionsOf(documents).map(({ title }) => title),
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
    validation: { notExported: true, invalidLink: true, invalidPath: true, rewrittenLink: true },
  };
}

export interface WrittenPages {
  /** False: TypeDoc has written to stderr what is wrong, such as a dead link. */
  readonly right: boolean;
  /** Exports and members without a comment, a line each. */
  readonly uncommented: readonly string[];
}

/**
 * Docs, READMEs and the reference of the packages as pages.
 *
 * @param outDir absolute; what it contained goes
 */
export async function writePages(outDir: string): Promise<WrittenPages> {
  const app = await Application.bootstrap(options(outDir));
  const pages = new Pages();
  app.renderer.defineRouter("site", SiteRouter);
  app.converter.on(Converter.EVENT_BEGIN, ({ project }: Context) => pages.addDocuments(app, project));
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }: Context) => pages.nameModules(app, project));
  app.renderer.on(PageEvent.END, (page: PageEvent) => {
    page.contents = withLandmarks(page.contents ?? "");
  });
  const project = await app.convert();
  if (project === undefined) return { right: false, uncommented: [] };
  app.validate(project);
  const packages = new Set(publishedLibraries().map(({ name }) => name));
  await app.generateOutputs(project);
  const right = !app.logger.hasErrors() && !app.logger.hasWarnings();
  return { right, uncommented: uncommented(project, packages) };
}
