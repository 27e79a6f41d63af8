// `npm run demo`, `npm test` and `npm run test:all` on a bare machine: Node 20 and npm are all there is, so this file is
// plain JavaScript without dependencies. It brings pnpm (which brings Node 24), installs, and runs the steps of the command.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { buildAgent } from "./build-agent.mjs";
import { check, PURE_REPORT } from "./check.mjs";
import { prepareSpecs, specs } from "./specs.mjs";
import { pnpm, runAlongside, runStep, sayStep } from "./steps.mjs";
import { addCounts, countsOf, forgetSum, summarize } from "./summary.mjs";
import { canHaveControlPlane, ensurePackages, GROUPS } from "./system-packages.mjs";

/** What each command runs, and what it says of itself before it does. */
const COMMANDS = {
  test: {
    command: "npm test",
    steps: ["check", "build", "kernel core"],
    groups: { "kernel core": ["kernel"] },
    about: `Six minutes on two cores, npm packages included, which it fetches into node_modules the first time.
\`npm run test:all\` has what takes longer; \`pnpm check\` installs nothing but npm packages and takes two minutes.`,
  },
  "test:all": {
    command: "npm run test:all",
    steps: ["build", "package lint", "api reports", "kernel tests", "ipvs tests", "packet costs", "e2e"],
    groups: {
      "kernel tests": ["kernel", "programs", "browser", "windows"],
      "ipvs tests": ["kernel", "ipvs"],
      "packet costs": ["kernel", "cost"],
      e2e: ["kernel", "specs"],
    },
    about: `What \`npm test\` leaves out: fourteen minutes on two cores. The first time it also builds Kubernetes' control plane into
~/.cache/fairlead: seven minutes more.`,
  },
};

/** Parts of `check`, for a user who wants no more than that. */
const PARTS = {
  lint: ["biome", "layers", "unused", "tree"],
  typecheck: ["types", "page types", "site types"],
  tests: ["tests"],
};

const usage = `Usage: npm run demo [-- --keep] [-- --mode nftables]
       npm test [-- STEP…]
       npm run test:all [-- STEP…]

Steps of npm test: ${COMMANDS.test.steps.join(", ")}; parts of check: ${Object.keys(PARTS).join(", ")}
Steps of npm run test:all: ${COMMANDS["test:all"].steps.join(", ")}`;

const manifest = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));

/** Installs from the lock file; a second run finds everything there and takes a second. */
function install() {
  sayStep("install");
  return runStep(pnpm(manifest.packageManager, ["install", "--frozen-lockfile", "--reporter=append-only"]), {
    quiet: true,
  });
}

async function demo(args) {
  ensurePackages(["iptables", "iproute2", ...(args.some((arg) => arg.endsWith("nftables")) ? ["nftables"] : [])]);
  if (!(await install())) return 1;
  sayStep("build the agent");
  if (!(await buildAgent(manifest.packageManager))) return 1;
  if (args.includes("--console") && !(await runStep(pnpm(manifest.packageManager, toolBuild), { quiet: true })))
    return 1;
  const demoArgs = ["--silent", "--filter=@fairlead/e2e", "run", "demo", ...args];
  return (await runStep(pnpm(manifest.packageManager, demoArgs))) ? 0 : 1;
}

const toolBuild = ["exec", "turbo", "run", "build", "--filter=@fairlead/cli", "--output-logs=errors-only"];

/** A program of the workspace under pnpm, which turbo and some tests start themselves. */
function program(...argv) {
  return pnpm(manifest.packageManager, ["exec", ...argv]);
}

const API = ["--recursive", "--if-present", "run", "lint:api"];
const TURBO = ["--output-logs=errors-only", "--concurrency=2"];

/**
 * Tests of the kernel enter the namespaces that they make, which a plain user may only as the root of a user namespace.
 * Its network namespace is made after it, so that the files in /proc/net belong to that root.
 */
const AS_ROOT = ["unshare", "-Ur", "--", "unshare", "-n", "--", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"];

/** Without user namespaces the tests say what is missing. */
function asRoot() {
  const [command, ...args] = [...AS_ROOT, "true"];
  return process.getuid() === 0 || spawnSync(command, args, { stdio: "ignore" }).status !== 0 ? [] : AS_ROOT;
}

/** Runs tests of kinds, not those of the other command. */
async function vitest(report, part, args, prefix = []) {
  const code = await runAlongside(report, program(...prefix, "vitest", "run", ...args), {
    FAIRLEAD_REPORT: report,
    FAIRLEAD_TESTS: part,
  });
  return code === 0;
}

/** What all work of the steps of one command goes through. */
class Work {
  /** Step → whether it succeeded. */
  steps = {};
  /** Names of reports of vitest. */
  reports = [];
  /** Step → what its tests gave, by folder. */
  counts = {};

  /** @param {(step: string) => boolean} wants */
  constructor(wants) {
    this.wants = wants;
  }

  /**
   * Runs a step if it is wanted.
   *
   * @param {readonly string[]} reports FAIRLEAD_REPORT of its runs of vitest
   */
  async step(name, work, reports = []) {
    if (!this.wants(name)) return;
    this.steps[name] = await work();
    if (reports.length > 0) this.tested(name, reports);
  }

  tested(name, reports) {
    this.reports.push(...reports);
    this.counts[name] = addCounts(reports.map((report) => countsOf(report)));
  }

  build() {
    return this.step("build", () => runStep(program("turbo", "run", "build", ...TURBO), { quiet: true }));
  }
}

/** Lint, types and pure tests, while the build makes what tests on the kernel run. */
async function test(work, args) {
  const parts = args.flatMap((arg) => PARTS[arg] ?? []);
  const whole = args.length === 0 || args.includes("check");
  const checks = async () => {
    if (!whole && parts.length === 0) return;
    Object.assign(work.steps, await check({}, whole ? undefined : (name) => parts.includes(name)));
    if (whole || parts.includes("tests")) work.tested("tests", [PURE_REPORT]);
  };
  const kernel = async () => {
    await work.build();
    await work.step("kernel core", () => vitest("core", "core", ["--project=kernel"], asRoot()), ["core"]);
  };
  await Promise.all([checks(), kernel()]);
}

/** The test ground: the suites that take longest, in files of about the same length. */
const GROUND = "e2e/";
const OTHERS = ["packages/", "apps/", "lab/", "deploy/", "scripts/", "site/"];
/** It needs the control plane, and starts one: the time that its build takes is no test's. */
const BENCH = "bench/";

/** What follows the build runs side by side: none of it measures time, all of it waits for much, and all together use both cores. */
async function testAll(work) {
  const kinds = ["kernel", "program", "browser", "bounds"].map((kind) => `--project=${kind}`);
  const needed = canHaveControlPlane() && ["kernel tests", "e2e"].some((name) => work.wants(name));
  const prepared = needed ? prepareSpecs(manifest.packageManager) : Promise.resolve();
  await work.build();
  await Promise.all([
    work.step("ipvs tests", () => vitest("uml", "rest", ["--project=uml"]), ["uml"]),
    work.step("packet costs", () => vitest("cost", "rest", ["--project=qemu", "e2e/test/cost"]), ["cost"]),
    work.step("kernel tests", async () => {
      const ground = vitest("lab", "rest", ["--project=kernel", "--project=program", GROUND]);
      const others = vitest("kernel", "rest", [...kinds, ...OTHERS]);
      // Last: when all begins, the clusters of e2e start two control planes.
      const bench = Promise.all([others, prepared]).then(() => vitest("bench", "rest", ["--project=kernel", BENCH]));
      return (await Promise.all([ground, others, bench])).every(Boolean);
    }, ["lab", "kernel", "bench"]),
    work.step("package lint", () => quietly("packages", program("turbo", "run", "lint:package", "--only", ...TURBO))),
    work.step("api reports", () => quietly("api", pnpm(manifest.packageManager, API))),
    prepared.then(() =>
      work.step("e2e", async () => {
        const counts = await specs(manifest.packageManager);
        work.counts.e2e = { "e2e specs": counts };
        return counts.failed === 0;
      }),
    ),
  ]);
}

async function quietly(name, argv) {
  return (await runAlongside(name, argv)) === 0;
}

async function run(name, args) {
  const { command, steps, groups, about } = COMMANDS[name];
  const isPart = (arg) => name === "test" && Object.hasOwn(PARTS, arg);
  const needsBuild = (arg) => arg !== "check" && !isPart(arg);
  const unknown = args.find((arg) => !steps.includes(arg) && !isPart(arg));
  if (unknown !== undefined) {
    console.error(`${command}: ${JSON.stringify(unknown)} is not a step\n\n${usage}`);
    return 2;
  }
  forgetSum(name);
  const wanted = (step) => args.length === 0 || args.includes(step) || (step === "build" && args.some(needsBuild));
  console.log(`${command}: ${steps.filter(wanted).join(", ") || "parts of check"}. ${about}`);
  const needed = Object.entries(groups).flatMap(([step, names]) => (wanted(step) ? names : []));
  ensurePackages([...new Set(needed.flatMap((group) => GROUPS[group]))]);
  if (!(await install())) return summarize({ install: false }, {}, { keep: name });
  sayStep(steps.filter(wanted).join(", ") || args.join(", "));
  const work = new Work(wanted);
  await (name === "test" ? test(work, args) : testAll(work));
  return summarize(work.steps, work.counts, { reports: work.reports, keep: name });
}

const [name, ...args] = process.argv.slice(2);
if (name === "demo") process.exitCode = await demo(args);
else if (Object.hasOwn(COMMANDS, name)) process.exitCode = await run(name, args);
else {
  console.error(usage);
  process.exitCode = 2;
}
