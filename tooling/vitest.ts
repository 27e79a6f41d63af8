import { fileURLToPath } from "node:url";
import { configDefaults, defineConfig, type TestProjectInlineConfiguration, type ViteUserConfig } from "vitest/config";
import { CORE_TESTS } from "./core-tests.ts";
import { CountsReporter } from "./counts.ts";
import { runs } from "./runs.ts";

type TestSettings = NonNullable<TestProjectInlineConfiguration["test"]>;

/** The end of a hang and no measure of speed: a machine that is busy with other work takes many times as long. */
const HANGS_MS = 600_000 * Math.max(1, runs(1));

/** Of tests that start programs: half a minute of processor time is ten minutes of a machine with load 100. */
const PROGRAMS: TestSettings = { testTimeout: 3 * HANGS_MS, hookTimeout: 3 * HANGS_MS };

/**
 * What a test file needs, which its name says: `NAME.KIND.test.ts`. Files without a kind are pure: they need Node and
 * nothing else, so that they can share processes.
 *
 * - kernel: network namespaces and the kernel's tools
 * - browser: Chromium
 * - uml: User-Mode Linux
 * - qemu: QEMU and Debian's kernels
 * - program: built bundles, or programs such as shells
 * - bounds: memory and processors enough for what it measures
 * - apiserver: a Kubernetes API server, which the test ground gives it
 */
export const TEST_KINDS = ["kernel", "browser", "uml", "qemu", "program", "bounds", "apiserver"] as const;
export type TestKind = (typeof TEST_KINDS)[number];

/** Set-up of tests that start processes. */
export const END_OF_TESTS = fileURLToPath(new URL("end-of-tests.ts", import.meta.url));

/** Set-up of all tests: what each file costs. */
const COST = fileURLToPath(new URL("cost.ts", import.meta.url));

const TEMPORARY_FOLDER = fileURLToPath(new URL("temporary-folder.ts", import.meta.url));

const PROPERTIES = fileURLToPath(new URL("properties.ts", import.meta.url));

/** Nothing of a file stays for the next one but modules, so one start of a thread does for many files. */
const PURE: TestSettings = {
  pool: "threads",
  isolate: false,
  setupFiles: [COST, ...(process.env["FAIRLEAD_RUNS"] === undefined ? [] : [PROPERTIES])],
};

const SETTINGS: Readonly<Record<TestKind, TestSettings>> = {
  // In processes: what enters a namespace takes its whole process along.
  kernel: { isolate: false },
  browser: { isolate: false },
  uml: { fileParallelism: false },
  // Hooks run guests whose instructions are counted: minutes of processor time, of which a busy machine gives little.
  qemu: { fileParallelism: false, hookTimeout: 6 * HANGS_MS },
  program: {},
  bounds: { fileParallelism: false },
  apiserver: {},
};

/** Tests start hundreds of processes of Node from sources: what one of them has compiled, the next one has. */
process.env["NODE_COMPILE_CACHE"] ??= fileURLToPath(new URL("../node_modules/.cache/compiled", import.meta.url));

const CONDITIONS = ["@fairlead/source", "node", "import", "module", "default"];

export interface TestFolders {
  /** Glob of the folders with `src` and `test` in them, relative to the configuration; its own where there is none. */
  readonly folders?: string;
  /** Modules that build what kernel and program tests run, relative to the configuration. */
  readonly builds?: readonly string[];
  readonly test?: TestSettings;
}

/**
 * Test settings: one project for pure tests and one for each kind. With FAIRLEAD_REPORT=NAME
 * a run prints only what fails, and leaves its report in .vitest/NAME.json. With FAIRLEAD_TESTS=core the kinds have the
 * tests of `npm test` only, with FAIRLEAD_TESTS=rest all others.
 */
export function packageTests({ folders = ".", builds = [], test = {} }: TestFolders = {}): ViteUserConfig {
  const { FAIRLEAD_REPORT: report, FAIRLEAD_TEST_APISERVER: apiServer, FAIRLEAD_TESTS: part } = process.env;
  if (part !== undefined && part !== "core" && part !== "rest") {
    throw new RangeError(`FAIRLEAD_TESTS=${part}: give core or rest`);
  }
  const ofKind = (kind: TestKind) => files(folders, `.${kind}.test.ts`);
  const ofPart = (kind: TestKind): TestSettings => {
    if (part === "core") return { include: CORE_TESTS.filter((file) => file.endsWith(`.${kind}.test.ts`)) };
    const exclude = [...configDefaults.exclude, ...(part === "rest" ? CORE_TESTS : [])];
    return { include: [ofKind(kind)], exclude };
  };
  const project = (name: string, settings: TestSettings): TestProjectInlineConfiguration => ({
    extends: true,
    test: { name, globalSetup: TEMPORARY_FOLDER, ...settings, ...test },
  });
  const globalSetup = [TEMPORARY_FOLDER, ...builds];
  const kinds = TEST_KINDS.filter((kind) => kind !== "apiserver" || apiServer !== undefined);
  return sourceTests({
    reporters: report === undefined ? ["default"] : ["minimal", new CountsReporter(`.vitest/${report}.json`)],
    projects: [
      // Without the defaults the search walks the links between packages, which circle: a minute before any test.
      project("pure", {
        ...PURE,
        include: [files(folders, ".test.ts")],
        exclude: [...configDefaults.exclude, ...TEST_KINDS.map(ofKind)],
      }),
      ...kinds.map((kind) =>
        project(kind, {
          globalSetup,
          setupFiles: [COST, END_OF_TESTS],
          ...PROGRAMS,
          ...ofPart(kind),
          ...SETTINGS[kind],
        }),
      ),
    ],
  });
}

/**
 * Settings of all tests. Workspace packages are taken from their sources, so that nothing has to be built first.
 * Nothing is retried: a test that fails once has found something.
 */
export function sourceTests(test: NonNullable<ViteUserConfig["test"]>): ViteUserConfig {
  return defineConfig({
    resolve: { conditions: CONDITIONS },
    ssr: { resolve: { conditions: CONDITIONS, externalConditions: CONDITIONS } },
    // What global set-up imports is resolved in an environment of vitest's own.
    environments: { __vitest__: { resolve: { conditions: CONDITIONS, externalConditions: CONDITIONS } } },
    test: {
      retry: 0,
      // Vitest itself leaves one core unused, which is half of two.
      maxWorkers: "100%",
      testTimeout: HANGS_MS,
      hookTimeout: HANGS_MS,
      expect: { poll: { timeout: HANGS_MS } },
      passWithNoTests: false,
      ...test,
    },
  });
}

function files(folders: string, end: string): string {
  return `${folders}/{src,test}/**/*${end}`;
}
