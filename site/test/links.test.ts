import { globSync } from "node:fs";
import { join } from "node:path";
import { Application } from "typedoc";
import { describe, expect, test } from "vitest";
import { uncommented } from "../src/build/pages.ts";
import { deadLinks, documents, repository, siteLinks, type Tree } from "../src/links.ts";
import { repositoryDir } from "../src/paths.ts";
import { publishedLibraries, sectionsOf } from "../src/sections.ts";

const FILES: Readonly<Record<string, string>> = {
  "README.md": "# Start\n\n[the image](docs/install.md#the-image--or-two)\n",
  "docs/it.md": "",
  "docs/install.md": "# Installing\n\n## The image `x`, or two\n\n## The image & or two\n",
  "docs/picture.svg": "<svg/>",
  "packages/trace/README.md": "# trace\n",
  "packages/trace/src/index.ts": "",
};

const tree: Tree = {
  kind: (path) => {
    if (path in FILES) return "file";
    return Object.keys(FILES).some((file) => file.startsWith(`${path}/`)) ? "folder" : undefined;
  },
  text: (path) => FILES[path] ?? "",
};

const dead = (text: string) =>
  deadLinks({ ...tree, text: (path) => (path === "docs/it.md" ? text : tree.text(path)) }, "docs/it.md");

describe("a link within the repository", () => {
  test.each([
    ["to a file", "[x](install.md)"],
    ["to a heading", "[x](install.md#the-image-x-or-two)"],
    ["to a heading with a sign between spaces", "[x](install.md#the-image--or-two)"],
    ["to a folder", "[x](../packages/trace)"],
    ["to a heading of a folder's README", "[x](../packages/trace/#trace)"],
    ["to a heading of its own", "# A `b`\n\n[x](#a-b)"],
    ["to the web", "[x](https://kubernetes.io/docs#nothing)"],
    ["in code", "`[x](nothing.md)`\n\n```md\n[x](nothing.md)\n```\n"],
    ["in a comment", "<!-- from the first release\n[x](nothing.md)\n-->"],
  ])("%s", (_, text) => expect(dead(text)).toEqual([]));

  test.each([
    ["[x](../nothing.md)", "docs/it.md:1: ../nothing.md: there is no such file"],
    ["\n[x](install.md#nothing)", "docs/it.md:2: install.md#nothing: docs/install.md has no heading with this anchor"],
    ["# a\n\n## a\n\n[x](#a-2)", "docs/it.md:5: #a-2: docs/it.md has no heading with this anchor"],
    ["[x](../packages/trace/src/index.ts#L3)", expect.stringContaining("only Markdown files have anchors")],
    ["```md\n# a\n```\n[x](#a)", expect.stringContaining("has no heading")],
    ["[![x](none.png)](install.md)", expect.stringContaining("none.png: there is no such file")],
  ])("%j is dead", (text, problem) => expect(dead(text)).toEqual([problem]));
});

describe("a link on the site", () => {
  const isPage = (path: string) => path.endsWith("README.md") || path === "docs/install.md" || path === "docs/it.md";
  const rewritten = (text: string) => siteLinks(tree, "docs/it.md", text, isPage);

  test.each([
    ["to a page is its file", "install.md#the-image", "./install.md#the-image"],
    ["to a package is its README", "../packages/trace", "./../packages/trace/README.md"],
    ["to a picture stays", "picture.svg", "picture.svg"],
    ["to a heading stays", "#here", "#here"],
    ["to the web stays", "https://kubernetes.io/", "https://kubernetes.io/"],
    [
      "to a source is on GitHub",
      "../packages/trace/src/index.ts",
      "https://github.com/fairlead-dev/fairlead/blob/main/packages/trace/src/index.ts",
    ],
    [
      "to a folder without README is on GitHub",
      "../packages/trace/src",
      "https://github.com/fairlead-dev/fairlead/tree/main/packages/trace/src",
    ],
  ])("%s", (_, link, there) => {
    expect(rewritten(`a [x](${link}), [y](#y) \`[z](z.md)\``)).toBe(`a [x](${there}), [y](#y) \`[z](z.md)\``);
  });
});

const markdown = globSync(
  ["*.md", ".github/*.md", "docs/**/*.md", "{packages,apps}/*/*.md", "{e2e,lab,bench,deploy}/**/*.md"],
  {
    cwd: repositoryDir,
    exclude: (path) => /node_modules|fixtures|\.e2e|CHANGELOG/.test(path),
  },
).sort();

test.each(markdown)("the links of %s", (file) => expect(deadLinks(repository, file)).toEqual([]));

describe("the pages of the site", () => {
  const pages = sectionsOf(documents).flatMap(({ files }) => files);

  test("are all documents and the READMEs of programs, each once", () => {
    expect(new Set(pages).size).toBe(pages.length);
    expect(pages.filter((file) => repository.kind(file) !== "file")).toEqual([]);
    expect(pages).toEqual(expect.arrayContaining([...documents, "apps/agent/README.md", "apps/cli/README.md"]));
  });

  test("have a section for a document that is in none", () => {
    expect(sectionsOf([...documents, "docs/new.md"]).at(-1)).toEqual({ title: "More", files: ["docs/new.md"] });
  });

  test("and every library has a README", () => {
    const readmes = publishedLibraries().map(({ folder }) => `${folder}/README.md`);
    expect(readmes.filter((file) => repository.kind(file) !== "file")).toEqual([]);
  });
});

test("exports and members without a comment are named; inline types and single literals need none", async () => {
  const folder = join(import.meta.dirname, "fixtures/comments");
  const options = { entryPoints: [join(folder, "index.ts")], tsconfig: join(folder, "tsconfig.json") };
  const app = await Application.bootstrap({ ...options, readme: "none", logLevel: "Error" });
  const project = await app.convert();
  expect(project && uncommented(project, new Set(["comments"]))).toEqual(
    ["bare", "Commented.second", "Commented.other", "Empty"].map(
      (name) => `${name}, defined in comments/index.ts, has no comment`,
    ),
  );
  expect(project && uncommented(project, new Set(["others"]))).toEqual([]);
});
