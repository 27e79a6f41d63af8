import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createRunner } from "@fairlead/kernel";
import { expect, test } from "vitest";
import { repositoryDir } from "../src/paths.ts";
import { publishedPackages } from "../src/release/published.ts";
import { releasedText } from "../src/release/released-text.ts";

const passage = (from: string) =>
  `Above.\n\n<!-- until the first release -->\nNot yet.\n<!-- from the first release\n${from}-->\n\nBelow.\n`;

test("a passage becomes what it says from the first release on", () => {
  expect(releasedText(passage("It is there.\n"))).toBe("Above.\n\nIt is there.\n\nBelow.\n");
  expect(releasedText(passage(""))).toBe("Above.\n\nBelow.\n");
  expect(releasedText(`${passage("One.\n")}${passage("Two.\n")}`)).toContain("One.\n\nBelow.\nAbove.\n\nTwo.");
  expect(releasedText("As it is.\n")).toBe("As it is.\n");
});

/** What only an unreleased project says. */
const UNRELEASED =
  /not on npm|no release yet|until the first release|(?<![\d.])0\.0\.0(?![\d.])|when there is (?:one,|a release)/i;

test("after the first release no document says that there is none", async () => {
  const { stdout } = await createRunner().run(["git", "-C", repositoryDir, "ls-files", "*.md"]);
  // It is about releases, the first one included.
  const own = /^\.changeset\/|^docs\/releasing\.md$|^CHANGELOG\.md$/;
  const names = stdout.split("\n").filter((name) => name !== "" && !own.test(name));
  expect(names.length).toBeGreaterThan(30);
  for (const name of names) {
    const lines = releasedText(await readFile(join(repositoryDir, name), "utf8")).split("\n");
    expect([name, lines.filter((line) => UNRELEASED.test(line))]).toEqual([name, []]);
  }
});

test("until then each package's README says how to have it, and from then on by npm", async () => {
  for (const { name, version, dir } of await publishedPackages()) {
    const readme = await readFile(join(dir, "README.md"), "utf8");
    expect([name, readme.includes("<!-- until the first release -->")]).toEqual([name, version === "0.0.0"]);
    expect(releasedText(readme)).toMatch(
      new RegExp(`npm install (?:-g )?(?:@fairlead/[\\w-]+ )*${name}|npx .*${name}`),
    );
  }
});
