import { createRunner } from "@fairlead/kernel";
import { goldenFolder } from "@fairlead/testkit";
import { beforeAll, describe, expect, test } from "vitest";
import { plain, styleFor } from "../src/frame/style.ts";

const COLOURED = "\u001b[32mgood\u001b[39m";

describe("colours", () => {
  test.each<[what: string, terminal: boolean, env: Record<string, string>, expected: string]>([
    ["a terminal", true, {}, COLOURED],
    ["a pipe or a file", false, {}, "good"],
    ["NO_COLOR", true, { NO_COLOR: "1" }, "good"],
    ["NO_COLOR without a value, which is none", true, { NO_COLOR: "" }, COLOURED],
    ["a terminal that has none", true, { TERM: "dumb" }, "good"],
  ])("%s", (_what, terminal, env, expected) => expect(styleFor(terminal, env).good("good")).toBe(expected));

  test("without them text is as it was", () => {
    for (const paint of Object.values(plain)) expect(paint("text")).toBe("text");
  });
});

describe("the bundle on a real terminal", () => {
  const [bundle] = [`${import.meta.dirname}/../dist/main.js`];
  const command = `${process.execPath} ${bundle} explain np -f ${goldenFolder}/scenarios/05-nodeport.json --node node-a`;
  let hasScript = false;
  beforeAll(async () => {
    hasScript = await createRunner()
      .run(["script", "--version"])
      .then(
        () => true,
        () => false,
      );
  });

  /** `script` (util-linux) gives a program a terminal of its own. */
  const onTerminal = async (env: Record<string, string>) => {
    const runner = createRunner({ env: { TERM: "xterm", NO_COLOR: "", ...env } });
    return (await runner.run(["script", "--quiet", "--return", "--command", command, "/dev/null"])).stdout;
  };

  test("has colours there, none with NO_COLOR, and none in a pipe", async ({ skip }) => {
    if (!hasScript) skip("there is no script (util-linux) here");
    expect(await onTerminal({})).toContain("\u001b[1mdefault/np\u001b[22m on node-a");
    expect(await onTerminal({ NO_COLOR: "1" })).toContain("default/np on node-a");
    const [program = "", ...args] = command.split(" ");
    expect((await createRunner().run([program, ...args])).stdout).toContain("default/np on node-a");
  });
});
