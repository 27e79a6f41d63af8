import { join } from "node:path";
import {
  type Application,
  Comment,
  CommentTag,
  DocumentReflection,
  MinimalSourceFile,
  normalizePath,
  type ProjectReflection,
  type Reflection,
  ReflectionKind,
  StructureRouter,
} from "typedoc";
import { publishedLibraries } from "../packages.ts";
import { repositoryDir } from "../paths.ts";
import { PACKAGES, sectionsOf } from "../sections.ts";
import { siteLinks } from "../text/links.ts";
import { titleOf } from "../text/markdown.ts";
import { documents, repository } from "../tree.ts";

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
export class Pages {
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
export class SiteRouter extends StructureRouter {
  protected override getIdealBaseName(reflection: Reflection): string {
    return urls.get(reflection) ?? super.getIdealBaseName(reflection).replace(/^_fairlead\//, "packages/");
  }
}
