import { join } from "node:path";
import {
  Application,
  Comment,
  CommentTag,
  type Context,
  Converter,
  type DeclarationReflection,
  DocumentReflection,
  MinimalSourceFile,
  normalizePath,
  PageEvent,
  type ProjectReflection,
  type Reflection,
  ReflectionKind,
  StructureRouter,
  type TypeDocOptions,
} from "typedoc";
import { documents, repository, siteLinks, titleOf } from "../links.ts";
import { repositoryDir, siteDir } from "../paths.ts";
import { PACKAGES, publishedLibraries, sectionsOf } from "../sections.ts";

/** Pages of packages, and the first one, have a heading already. */
const TITLE_LINE = /^# .*\n/m;
/** In place of this picture the site has the form of the tracer. */
const TRACER = /^!\[.*\]\(site-tracer\.png\)$/m;
/** Among them what a README says from the first release on. */
const COMMENT = /^<!--[\s\S]*?-->\n/gm;
/** Anchors are made of a heading's text without its code, GitHub's with it. */
const CODE_IN_HEADING = /(?<=^##+ .*)`/gm;
const START = "README.md";

/** The docs and READMEs as TypeDoc's documents, the packages as its modules. The texts are read where they are. */
class Pages {
  readonly #libraries = publishedLibraries();
  readonly #sections = sectionsOf(documents);
  readonly #documents = new Set(this.#sections.flatMap(({ files }) => files));
  readonly #readmes = new Map(this.#libraries.map((library) => [`${library.folder}/README.md`, library]));

  readonly #isPage = (path: string) => path === START || this.#documents.has(path) || this.#readmes.has(path);

  /** Before sources are converted: one document for each file, and the first page. */
  addDocuments(app: Application, project: ProjectReflection): void {
    project.readme = this.#content(app, project, START);
    project.files.registerReflectionPath(normal(START), project);
    for (const { title: category, files } of this.#sections) {
      for (const file of files) {
        const name = titleOf(repository.text(file)) ?? file;
        const document = new DocumentReflection(name, project, this.#content(app, project, file), { category });
        project.addChild(document);
        project.registerReflection(document, undefined, normal(file));
        urls.set(document, file.replace(/(?:\/README)?\.md$/, "").toLowerCase());
      }
    }
  }

  /** After that: modules have the names by which they are imported, and a package's own one has its README. */
  nameModules(app: Application, project: ProjectReflection): void {
    const names = new Map(
      this.#libraries.flatMap(({ entries }) => [...entries].map(([name, source]) => [source, name])),
    );
    for (const module of project.getChildrenByKind(ReflectionKind.Module)) {
      const source = project.getSymbolIdFromReflection(module)?.fileName?.slice(repositoryDir.length + 1) ?? "";
      module.name = names.get(source) ?? module.name;
      module.comment ??= new Comment();
      module.comment.blockTags.push(new CommentTag("@category", [{ kind: "text", text: PACKAGES }]));
      const library = this.#libraries.find(({ name }) => name === module.name);
      if (library === undefined) continue;
      const file = `${library.folder}/README.md`;
      module.readme = this.#content(app, project, file);
      project.files.registerReflectionPath(normal(file), module);
    }
  }

  #content(app: Application, project: ProjectReflection, file: string) {
    const text = siteLinks(repository, file, repository.text(file), this.#isPage)
      .replace(this.#documents.has(file) ? "" : TITLE_LINE, "")
      .replace(CODE_IN_HEADING, "")
      .replace(TRACER, '<div id="tracer"></div>')
      .replace(COMMENT, "");
    return app.converter.parseRawComment(new MinimalSourceFile(text, normal(file)), project.files).content;
  }
}

/** TypeDoc has paths with forward slashes. */
const normal = (file: string) => normalizePath(join(repositoryDir, file));

/** A document's address: its file's path. */
const urls = new WeakMap<object, string>();

/** Documents where their files are, everything else by the names of modules. */
class SiteRouter extends StructureRouter {
  protected override getIdealBaseName(reflection: Reflection): string {
    return urls.get(reflection) ?? super.getIdealBaseName(reflection).replace(/^_fairlead\//, "packages/");
  }
}

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
    highlightLanguages: [
      "typescript",
      "shellscript",
      "yaml",
      "json",
      "jsonc",
      "console",
      "diff",
      "docker",
      "toml",
      "powershell",
    ],
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

/** What TypeDoc's pages lack for readers of screens: the main part of a page, and names for what is at its side. */
const LANDMARKS = [
  ['<div class="col-content">', '<div class="col-content" role="main">'],
  ['<nav id="tsd-sidebar-links"', '<nav id="tsd-sidebar-links" aria-label="Links"'],
  ['<div class="page-menu">', '<div class="page-menu" role="navigation" aria-label="This page">'],
] as const;

/** @param html a page of TypeDoc */
function withLandmarks(html: string): string {
  return LANDMARKS.reduce((page, [without, named]) => page.replace(without, named), html);
}

const KINDS =
  ReflectionKind.Variable |
  ReflectionKind.Function |
  ReflectionKind.Class |
  ReflectionKind.Interface |
  ReflectionKind.Property |
  ReflectionKind.Method |
  ReflectionKind.Accessor |
  ReflectionKind.TypeAlias;

/**
 * Exports and members without a comment, a line each. Two kinds of members need none, which TypeDoc's own check asks
 * for: those of a type that is written inline, which the comment of the whole explains, and those of a single literal
 * type, such as `kind: "full"`.
 *
 * @param packages names of those that are looked at
 */
export function uncommented(project: ProjectReflection, packages: ReadonlySet<string>): readonly string[] {
  return project.getReflectionsByKind(KINDS).flatMap((member) => {
    const { packageName = "", packagePath = "" } = project.getSymbolIdFromReflection(member) ?? {};
    if (!packages.has(packageName) || isInline(member) || !member.isDeclaration()) return [];
    if (member.type?.type === "literal" || isCommented(member)) return [];
    return [`${member.getFriendlyFullName()}, defined in ${packageName}/${packagePath}, has no comment`];
  });
}

const isInline = ({ parent }: Reflection): boolean =>
  parent !== undefined && (parent.name === "__type" || parent.kindOf(ReflectionKind.Parameter) || isInline(parent));

/** The comment of a function is that of one of its signatures. */
function isCommented(member: DeclarationReflection): boolean {
  const { type } = member;
  const inner = type?.type === "reflection" ? type.declaration.getAllSignatures() : [];
  return [member, ...member.getAllSignatures(), ...inner].some((one) => one.hasComment());
}
