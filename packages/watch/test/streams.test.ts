import fc from "fast-check";
import { expect, test } from "vitest";
import { lineSplitter } from "../src/api/lines.ts";
import { listParser } from "../src/api/list-parser.ts";
import { parseJson } from "../src/manifests/json.ts";

/** Cuts bytes into chunks, wherever it falls: in the middle of a character, of a line end, of nothing. */
function cut(bytes: Uint8Array, at: readonly number[]): Uint8Array[] {
  const places = [0, ...at.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return places.slice(1).map((end, i) => bytes.subarray(places[i], end));
}

const places = fc.array(fc.nat(), { maxLength: 12 });

test("lines are the same however they arrive; what has no end is no line", () => {
  const line = fc.string({ unit: "binary" }).map((text) => text.replace(/\s/g, "x"));
  fc.assert(
    fc.property(fc.array(line), line, fc.constantFrom("\n", "\r\n"), places, (lines, rest, end, at) => {
      const bytes = Buffer.from(lines.map((one) => `${one}${end}`).join("") + rest);
      const split = lineSplitter();
      const found = cut(bytes, at).flatMap((chunk) => [...split(chunk)]);
      expect(found.map(({ text, tooMuch }) => tooMuch ?? text)).toEqual(
        lines.filter((one) => one !== "").map((one) => Buffer.from(one).toString()),
      );
    }),
  );
});

test("a line that is too long is passed over at the cost of its bytes, and the next one is read", () => {
  const split = lineSplitter(100);
  const lines = ["x".repeat(60), "x".repeat(60), "y\nnext\n"].flatMap((part) => [...split(Buffer.from(part))]);
  expect(lines.map(({ tooMuch }) => tooMuch)).toEqual(["larger than 0 MiB", undefined]);
  expect(lines[0]?.text).toMatch(/^x+$/);
  expect(lines[1]?.text).toBe("next");
});

test("a list is the same however it arrives", () => {
  const item = fc.oneof(
    fc.record({ metadata: fc.record({ name: fc.string() }), items: fc.jsonValue() }),
    fc.jsonValue(),
  );
  fc.assert(
    fc.property(fc.array(item), fc.option(fc.string({ minLength: 1 })), places, (items, next, at) => {
      const metadata = { resourceVersion: "7", ...(next === null ? {} : { continue: next }) };
      const parser = listParser();
      const bytes = Buffer.from(JSON.stringify({ kind: "List", metadata, items }, null, 1));
      const found = cut(bytes, at).flatMap((chunk) => parser.write(chunk));
      expect(found).toEqual(JSON.parse(JSON.stringify(items)).map((raw: unknown) => ({ raw })));
      expect(parser.end()).toEqual({ resourceVersion: "7", next: next ?? undefined });
    }),
  );
});

test("JSON in slices is what JSON.parse gives", async () => {
  await fc.assert(
    fc.asyncProperty(fc.jsonValue(), async (value) => {
      const text = JSON.stringify({ value });
      expect(await parseJson(Buffer.from(text))).toEqual(JSON.parse(text));
    }),
  );
});

test("JSON of several slices doesn't hold the event loop", async () => {
  const value = { items: Array.from({ length: 40_000 }, (_, i) => ({ i, text: `number ${i}` })) };
  let turns = 0;
  let counting = true;
  const count = () => {
    turns++;
    if (counting) setImmediate(count);
  };
  setImmediate(count);
  expect(await parseJson(Buffer.from(JSON.stringify(value)))).toEqual(value);
  counting = false;
  expect(turns).toBeGreaterThan(1);
});
