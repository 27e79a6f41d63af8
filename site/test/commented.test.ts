import { join } from "node:path";
import { Application } from "typedoc";
import { expect, test } from "vitest";
import { uncommented } from "../src/build/commented.ts";

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
