import { access, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { repositoryDir } from "../src/paths.ts";

const read = (name: string) => readFile(join(repositoryDir, name), "utf8");
const text = await read("docs/architecture.md");

test("the table of rooms says what may import what, as pnpm lint:layers enforces it", async () => {
  const layers: Readonly<Record<string, readonly string[]>> = JSON.parse(await read("tooling/layers.json"));
  const rows = [...text.matchAll(/^\| (?:packages\/(?=\w)|(?=lab ))([\w-]+) .*\| ([^|]*?) *\|$/gm)].map(
    ([, name = "", may = ""]) => {
      const rooms = may === "–" ? [] : may.split(", ");
      return [name, name === "base" ? rooms : ["base", ...rooms].sort()] as const;
    },
  );
  expect(Object.fromEntries(rows)).toEqual(layers);
});

test("the files on a change's way are there", async () => {
  const [, way = ""] = /## A change on its way([\s\S]*?)\n## /.exec(text) ?? [];
  const files = [...way.matchAll(/`((?:packages|apps)\/[\w./-]+\.ts)`/g)].map(([, file = ""]) => file);
  expect(files.length).toBeGreaterThan(10);
  for (const file of files) await access(join(repositoryDir, file));
});
