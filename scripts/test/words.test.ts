import { expect, test } from "vitest";
import { replacedWords } from "../words.mjs";

// quoted: CONTRIBUTING.md
const [VERB, PERSON, ADVERB] = ["told", "Nobody", "alone"] as const;
const COMMENT = `/** What the kernel ${VERB}. */\n`;
const found = (file: string, line: number, word: string) =>
  `${file}:${line}: "${word}": CONTRIBUTING.md has the word that we use`;

test("comments, messages and names in code have none of the replaced words, with their place", () => {
  const file = "packages/kernel/src/a.ts";
  const text = `${COMMENT}\nthrow new Error("${PERSON} listens");\nconst ${ADVERB} = 1;\n`;
  expect(replacedWords(file, text)).toEqual([found(file, 1, VERB), found(file, 3, PERSON), found(file, 4, ADVERB)]);
  expect(replacedWords(file, "const whomever = stories.untold;\n")).toEqual([]);
  for (const other of ["site/src/a.tsx", "scripts/a.mjs"]) expect(replacedWords(other, COMMENT)).toHaveLength(1);
});

test("a quotation keeps the word on its line and on the next one; fixtures are others' text", () => {
  const file = "packages/kernel/test/a.test.ts";
  expect(replacedWords(file, `// quoted: ipvsadm\n${COMMENT}${COMMENT}`)).toEqual([found(file, 3, VERB)]);
  expect(replacedWords(file, COMMENT.replace("\n", " // quoted: nft\n"))).toEqual([]);
  expect(replacedWords(file, `// quoted:\n${COMMENT}`)).toHaveLength(1);
  expect(replacedWords("packages/kernel/test/fixtures/a.ts", COMMENT)).toEqual([]);
});

test("Markdown that users read has none of them either, but for its code", () => {
  const text = `${COMMENT}\`${VERB}\`\n\n\`\`\`sh\n${COMMENT}\`\`\`\nThere is none. It is none.\n`;
  expect(replacedWords("docs/a.md", text)).toEqual([found("docs/a.md", 1, VERB), found("docs/a.md", 7, "is none")]);
  for (const other of ["docs/cli.md", "CONTRIBUTING.md"]) expect(replacedWords(other, COMMENT)).toEqual([]);
});
