import fc from "fast-check";
import { expect, test } from "vitest";
import { lineSplitter } from "../src/api/events.ts";
import { listParser } from "../src/api/lists.ts";
import { itemsOf, jsonObjects } from "../src/manifests/parse.ts";
import { collected } from "../src/manifests/snapshot.ts";

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
      const found = cut(bytes, at).flatMap((chunk) => [...parser.write(chunk)]);
      expect(found).toEqual(JSON.parse(JSON.stringify(items)).map((raw: unknown) => ({ raw })));
      expect(parser.end()).toEqual({ resourceVersion: "7", next: next ?? undefined });
    }),
  );
});

test("the objects of JSON are what JSON.parse gives, whatever is called items in it", async () => {
  const element = fc.oneof(
    fc.jsonValue({ maxDepth: 3 }),
    fc.record({ kind: fc.constantFrom("List", "X", "XList"), items: fc.array(fc.jsonValue({ maxDepth: 2 })) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(element), fc.nat(3), async (elements, indent) => {
      const text = JSON.stringify(elements, null, indent);
      expect(await collected(jsonObjects(Buffer.from(text)))).toEqual(itemsOf(JSON.parse(text)));
    }),
  );
});

test("JSON of several slices doesn't hold the event loop", async () => {
  const value = { kind: "List", items: Array.from({ length: 40_000 }, (_, i) => ({ i, text: `number ${i}` })) };
  let turns = 0;
  let counting = true;
  const count = () => {
    turns++;
    if (counting) setImmediate(count);
  };
  setImmediate(count);
  expect(await collected(jsonObjects(Buffer.from(JSON.stringify(value))))).toEqual(value.items);
  counting = false;
  expect(turns).toBeGreaterThan(1);
});
