import { copyFile, readFile, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { CommandError, createRunner } from "@fairlead/kernel";
import { goldenFolder } from "@fairlead/testkit";
import { LightApiServer } from "@fairlead/testkit/api-server";
import { beforeAll, describe, expect, test } from "vitest";
import { kubeconfigFor, ownFolder } from "./support/files.ts";

/** The bundle in a folder of its own: nothing but Node alongside it. */
const dir = ownFolder();
beforeAll(() => copyFile(join(import.meta.dirname, "..", "dist", "main.js"), join(dir, "main.js")));

async function fairlead(...args: string[]) {
  try {
    const { stdout, stderr } = await createRunner({ timeoutMs: 0 }).run([
      process.execPath,
      join(dir, "main.js"),
      ...args,
    ]);
    return { code: 0, out: stdout, err: stderr };
  } catch (error) {
    if (!(error instanceof CommandError) || error.exitCode === undefined) throw error;
    return { code: error.exitCode, out: "", err: error.stderr };
  }
}

/** What it calls itself by default. */
const OF_LIBRARY = "kubernetes-client-javascript";

describe("the bundle by itself", () => {
  test("--version", async () => {
    const { version } = JSON.parse(await readFile(join(import.meta.dirname, "..", "package.json"), "utf8"));
    expect(await fairlead("--version")).toEqual({ code: 0, out: `Fairlead v${version}\n`, err: "" });
  });

  test("the Kubernetes client library is in a file of its own, which only commands that ask a cluster load", async () => {
    const dist = join(import.meta.dirname, "..", "dist");
    const [program, library] = await Promise.all(
      ["main.js", "kubernetes-client.js"].map((name) => readFile(join(dist, name), "utf8")),
    );
    expect(library).toContain(OF_LIBRARY);
    expect(program).not.toContain(OF_LIBRARY);
    const api = new LightApiServer();
    try {
      const kubeconfig = kubeconfigFor(await api.start());
      const asked = () => fairlead("ownership", "--on", "node-a", "--kubeconfig", kubeconfig);
      // The program runs by itself: all other tests here are without the library.
      expect(await asked()).toMatchObject({ code: 3, err: expect.stringContaining("kubernetes-client.js") });
      await copyFile(join(dist, "kubernetes-client.js"), join(dir, "kubernetes-client.js"));
      expect(await asked()).toMatchObject({ code: 3, err: expect.stringMatching(/^--on=node-a: no agent runs there/) });
    } finally {
      await api.stop();
      await rm(join(dir, "kubernetes-client.js"), { force: true });
    }
  });

  test("without a command: what there is", async () => {
    const { code, out } = await fairlead();
    expect(code).toBe(0);
    for (const name of ["plan", "explain", "ownership", "completion"])
      expect(out).toMatch(new RegExp(`^  ${name} `, "m"));
  });

  test("a command's code is in it, and YAML", async () => {
    const file = join(goldenFolder, "scenarios", "05-nodeport.json");
    const { code, out } = await fairlead("explain", "np", "-f", file, "--node", "node-a", "-o", "yaml");
    expect(code).toBe(0);
    expect(out).toMatch(/^service: default\/np$/m);
  });

  test.each([
    ["an unknown command", ["explian"], 2, /unknown command 'explian'/],
    ["no such file", ["plan", "-f", "/does/not/exist"], 3, /^-f \/does\/not\/exist: no such file or folder$/m],
  ])("%s is reported", async (_what, args, expected, message) => {
    const { code, err } = await fairlead(...args);
    expect(err).toMatch(message);
    expect(code).toBe(expected);
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
    const runner = createRunner({ timeoutMs: 0, env: { TERM: "xterm", NO_COLOR: "", ...env } });
    return (await runner.run(["script", "--quiet", "--return", "--command", command, "/dev/null"])).stdout;
  };

  test("has colors there, none with NO_COLOR, and none in a pipe", async ({ skip }) => {
    if (!hasScript) skip("there is no script (util-linux) here");
    expect(await onTerminal({})).toContain("\u001b[1mdefault/np\u001b[22m on node-a");
    expect(await onTerminal({ NO_COLOR: "1" })).toContain("default/np on node-a");
    const [program = "", ...args] = command.split(" ");
    expect((await createRunner({ timeoutMs: 0 }).run([program, ...args])).stdout).toContain("default/np on node-a");
  });
});

test("as kubectl-fairlead on PATH it calls itself kubectl fairlead", async () => {
  const bundle = join(import.meta.dirname, "..", "dist", "main.js");
  await symlink(bundle, join(dir, "kubectl-fairlead"));
  const { stdout } = await createRunner({ timeoutMs: 0 }).run([
    process.execPath,
    join(dir, "kubectl-fairlead"),
    "plan",
    "--help",
  ]);
  expect(stdout).toContain("Usage: kubectl fairlead plan");
  expect(stdout).toContain("kubectl fairlead plan -f web.yaml");
});
