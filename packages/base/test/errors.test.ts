import { asError, attemptAll, errorChainText, errorCode, errorText } from "@fairlead/base";
import { expect, test } from "vitest";
import { tooOld } from "../src/index.ts";

test.each([
  [new Error("no route"), "no route"],
  [new RangeError(), "RangeError"],
  ["thrown text", "thrown text"],
  [undefined, "undefined"],
  [new AggregateError([new Error("::1 refused"), new Error("127.0.0.1 refused")]), "::1 refused; 127.0.0.1 refused"],
])("%o becomes %j", (error, text) => {
  expect(errorText(error)).toBe(text);
});

test("causes are named once, five at most", () => {
  const refused = new Error("connect ECONNREFUSED");
  const listing = new Error("listing failed", {
    cause: new Error("request: connect ECONNREFUSED", { cause: refused }),
  });
  expect(errorChainText(listing)).toBe("listing failed: request: connect ECONNREFUSED");
  const chain = Array.from({ length: 9 }, (_, at) => `level ${at}`).reduce<Error | undefined>(
    (cause, message) => new Error(message, { cause }),
    undefined,
  );
  expect(errorChainText(chain)).toBe("level 8: level 7: level 6: level 5: level 4");
});

test.each([
  [Object.assign(new Error("no such file"), { code: "ENOENT" }), "ENOENT"],
  [Object.assign(new Error("a number"), { code: 2 }), undefined],
  [new Error("has none"), undefined],
  [{ code: "ENOENT" }, undefined],
])("the code of %o is %j", (error, code) => {
  expect(errorCode(error)).toBe(code);
});

test("what is not an error becomes the message of one", () => {
  const error = new Error("as it is");
  expect(asError(error)).toBe(error);
  expect(asError("text")).toMatchObject({ message: "text", cause: "text" });
});

test("a failure stops no other work, and is reported after the last one", async () => {
  const done: string[] = [];
  const work = (name: string, error?: Error) => async () => {
    done.push(name);
    if (error !== undefined) throw error;
  };
  const [first, third] = [new Error("first"), new Error("third")];
  const all = attemptAll([work("a", first), work("b"), work("c", third), work("d")], "something is left");
  await expect(all).rejects.toMatchObject({ message: "something is left", errors: [first, third] });
  expect(done).toEqual(["a", "b", "c", "d"]);
  await attemptAll([work("e")], "never reported");
});

test.each(["20.20.0", "22.18.1", "18.0.0"])(
  "Node %s is too old for a program that needs 22.19, which is said",
  (version) => {
    expect(tooOld("fairlead", [22, 19], version)).toBe(`fairlead needs Node 22.19 or newer, this is ${version}`);
  },
);

test.each(["22.19.0", "23.0.0", "24.9.0"])("Node %s is not", (version) => {
  expect(tooOld("fairlead", [22, 19], version)).toBeUndefined();
});
