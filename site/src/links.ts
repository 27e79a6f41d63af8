import { globSync, readFileSync, statSync } from "node:fs";
import { join, posix } from "node:path";
import { repositoryDir } from "./paths.ts";

const REPOSITORY = "https://github.com/fairlead-dev/fairlead";
const EXTERNAL = /^[a-z][a-z+.-]*:/i;
const PICTURE = /\.(?:png|svg)$/;

/** What links need to know of the repository. Paths are relative to it, with `/`. */
export interface Tree {
  readonly kind: (path: string) => "file" | "folder" | undefined;
  readonly text: (path: string) => string;
}

interface Place {
  readonly path: string;
  /** Without `#`; undefined: the link has no anchor. */
  readonly anchor?: string;
}

/** Where a link leads in the repository. Undefined where it leads out of it: to the web. */
function placeOf(file: string, target: string): Place | undefined {
  if (EXTERNAL.test(target)) return undefined;
  const [path = "", anchor] = target.split("#", 2);
  const there = path === "" ? file : posix.join(posix.dirname(file), decodeURI(path)).replace(/\/$/, "");
  return anchor === undefined ? { path: there } : { path: there, anchor };
}

/** What is wrong with a Markdown file's links within the repository, one line each: `FILE:LINE: TARGET: …`. */
export function deadLinks(tree: Tree, file: string): readonly string[] {
  const text = tree.text(file);
  return linksIn(text).flatMap(({ target, at }) => {
    const place = placeOf(file, target);
    const problem = place === undefined ? undefined : problemOf(tree, place);
    return problem === undefined ? [] : [`${file}:${text.slice(0, at).split("\n").length}: ${target}: ${problem}`];
  });
}

function problemOf(tree: Tree, { path, anchor }: Place): string | undefined {
  const kind = tree.kind(path);
  if (kind === undefined) return "there is no such file";
  if (anchor === undefined) return undefined;
  const page = kind === "folder" ? readmeOf(tree, path) : path;
  // Lines of sources (#L12) move; GitHub takes an anchor of a folder for one of its README.
  if (!page?.endsWith(".md")) return "only Markdown files have anchors";
  return anchorsIn(tree.text(page)).includes(anchor) ? undefined : `${page} has no heading with this anchor`;
}

function readmeOf(tree: Tree, folder: string): string | undefined {
  const readme = posix.join(folder, "README.md");
  return tree.kind(readme) === "file" ? readme : undefined;
}

/**
 * The text with links as the site needs them: to a page by the path of its file, to a picture as they are, and to
 * everything else on GitHub.
 *
 * @param isPage whether the site has a page of this Markdown file
 */
export function siteLinks(tree: Tree, file: string, text: string, isPage: (path: string) => boolean): string {
  let done = 0;
  const parts = linksIn(text).flatMap(({ target, at }) => {
    const before = text.slice(done, at);
    done = at + target.length;
    return [before, siteLink(tree, file, target, isPage)];
  });
  return [...parts, text.slice(done)].join("");
}

function siteLink(tree: Tree, file: string, target: string, isPage: (path: string) => boolean): string {
  const place = placeOf(file, target);
  if (place === undefined || target.startsWith("#") || PICTURE.test(place.path)) return target;
  const hash = place.anchor === undefined ? "" : `#${place.anchor}`;
  const folder = tree.kind(place.path) === "folder";
  const page = folder ? readmeOf(tree, place.path) : place.path;
  if (page === undefined || !isPage(page)) return `${REPOSITORY}/${folder ? "tree" : "blob"}/main/${place.path}${hash}`;
  // A link to itself needs its name as well: without a slash it would be taken for a heading.
  return `./${posix.relative(posix.dirname(file), page)}${hash}`;
}

/** Code and comments are not prose: links and headings in them do not count. Lengths and lines stay. */
const FENCES = /^( *)(```+)[\s\S]*?^\1\2[^\n]*$|<!--[\s\S]*?-->/gm;
const INLINE_CODE = /(`+)(?!`)[^\n]*?(?<!`)\1(?!`)/g;
const LINK = /(?<=\]\()[^()\s]+(?=\))/g;
const HEADING = /^#{1,6} +(.+?) *$/gm;

const blank = (text: string) => text.replace(/[^\n]/g, " ");

interface MarkdownLink {
  /** As written: `../docs/install.md#the-image`. */
  readonly target: string;
  /** Offset of its first character in the text. */
  readonly at: number;
}

function linksIn(text: string): readonly MarkdownLink[] {
  const prose = text.replace(FENCES, blank).replace(INLINE_CODE, blank);
  return Array.from(prose.matchAll(LINK), ({ 0: target, index }) => ({ target, at: index }));
}

/** The first heading, as plain text. Undefined where there is none. */
export function titleOf(text: string): string | undefined {
  const heading = /^# +(.+?) *$/m.exec(text.replace(FENCES, blank))?.[1];
  return heading === undefined ? undefined : plain(heading);
}

/** The anchors that GitHub gives to headings, in their order. */
function anchorsIn(text: string): readonly string[] {
  const seen = new Map<string, number>();
  return Array.from(text.replace(FENCES, blank).matchAll(HEADING), ([, heading = ""]) => {
    const anchor = plain(heading)
      .toLowerCase()
      .replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, "")
      .replaceAll(" ", "-");
    const before = seen.get(anchor) ?? 0;
    seen.set(anchor, before + 1);
    return before === 0 ? anchor : `${anchor}-${before}`;
  });
}

const plain = (heading: string) => heading.replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1").replace(/[`*]/g, "");

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
