// `npm run demo` and `npm test` on a bare machine: Node 20 and npm are all there is, so this file is plain JavaScript
// without dependencies. It brings pnpm (which brings Node 24), installs, and runs the steps of the command.
import { readFileSync } from "node:fs";
import { buildAgent } from "./build-agent.mjs";
import { check, PURE_REPORT } from "./check.mjs";
import { prepareSpecs, specs } from "./specs.mjs";
import { pnpm, runBeside, runStep, sayStep } from "./steps.mjs";
import { addCounts, countsOf, summarize } from "./summary.mjs";
import { canHaveControlPlane, ensurePackages, GROUPS } from "./system-packages.mjs";

const STEPS = ["check", "build", "package lint", "kernel tests", "ipvs tests", "packet costs", "e2e"];

/** Parts of `check`, for one who wants no more than that. */
const PARTS = {
  lint: ["biome", "layers", "unused", "tree"],
  typecheck: ["types", "page types", "site types"],
  tests: ["tests"],
};

const usage = `Usage: npm run demo [-- --keep] [-- --mode nftables]
       npm test [-- STEP…]

Steps of npm test: ${STEPS.join(", ")}; parts of check: ${Object.keys(PARTS).join(", ")}`;

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

/** The test ground: the suites that take longest, in two files of about the same length. */
const GROUND = "e2e/";

const TURBO = ["--output-logs=errors-only", "--concurrency=2"];

function vitest(report, args) {
  return runBeside(report, program("vitest", "run", ...args), { FAIRLEAD_REPORT: report });
}

/** Those of the test ground alongside those of all packages, some files at once. */
async function kernelTests() {
  const kinds = ["kernel", "program", "browser", "bounds"].map((kind) => `--project=${kind}`);
  const codes = await Promise.all([
    vitest("lab", ["--project=kernel", "--project=program", GROUND]),
    vitest("kernel", [...kinds, "packages/", "apps/", "lab/", "bench/", "deploy/", "site/"]),
  ]);
  return codes.every((code) => code === 0);
}

/** What a machine lacks, what is done about it, and how long everything takes: before anything is done. */
function announce(wanted) {
  const groups = [
    ...(wanted("kernel tests") ? ["kernel", "shells", "browser"] : []),
    ...(wanted("ipvs tests") ? ["kernel", "ipvs"] : []),
    ...(wanted("packet costs") ? ["kernel", "cost"] : []),
    ...(wanted("e2e") && canHaveControlPlane() ? ["kernel", "specs"] : []),
  ];
  console.log(`npm test: ${STEPS.filter(wanted).join(", ") || "parts of check"}. All of it takes fifteen minutes on two cores.
The first time it also fetches npm packages into node_modules, and builds Kubernetes' control plane, seven minutes, into
~/.cache/fairlead. \`pnpm check\` installs nothing but npm packages and takes two minutes.`);
  ensurePackages([...new Set(groups)].flatMap((group) => GROUPS[group]));
}

/**
 * Each step counts as one test in the closing line, so that no failure hides behind a green count. What follows the build
 * runs side by side: none of it measures time, all of it waits for much, and all together use both cores.
 */
async function test(args) {
  const unknown = args.find((arg) => !STEPS.includes(arg) && !Object.hasOwn(PARTS, arg));
  if (unknown !== undefined) {
    console.error(`npm test: ${JSON.stringify(unknown)} is not a step\n\n${usage}`);
    return 2;
  }
  const wanted = (name) => args.length === 0 || args.includes(name);
  const parts = args.flatMap((arg) => PARTS[arg] ?? []);
  announce(wanted);
  if (!(await install())) return summarize({ install: false });
  const prepared = wanted("e2e") && canHaveControlPlane() ? prepareSpecs(manifest.packageManager) : Promise.resolve();
  const steps = {};
  const counts = {};
  if (wanted("check") || parts.length > 0) {
    sayStep("check");
    Object.assign(steps, await check({}, wanted("check") ? undefined : (name) => parts.includes(name)));
    if (wanted("check") || parts.includes("tests")) counts.tests = countsOf(PURE_REPORT);
  }
  if (STEPS.slice(1).some(wanted)) {
    sayStep("build");
    steps.build = await runStep(program("turbo", "run", "build", ...TURBO));
  }
  const step = async (name, work) => {
    if (wanted(name)) steps[name] = await work();
  };
  sayStep("all others, side by side");
  await Promise.all([
    step("ipvs tests", async () => (await vitest("uml", ["--project=uml"])) === 0),
    step("packet costs", async () => (await vitest("cost", ["--project=qemu", "e2e/test/cost"])) === 0),
    step("kernel tests", kernelTests),
    step(
      "package lint",
      async () => (await runBeside("packages", program("turbo", "run", "lint:package", "--only", ...TURBO))) === 0,
    ),
    prepared.then(async () => {
      if (wanted("e2e")) counts.e2e = { "e2e specs": await specs(manifest.packageManager) };
    }),
  ]);
  if (wanted("kernel tests")) counts["kernel tests"] = addCounts([countsOf("kernel"), countsOf("lab")]);
  if (wanted("ipvs tests")) counts["ipvs tests"] = countsOf("uml");
  if (wanted("packet costs")) counts["packet costs"] = countsOf("cost");
  return summarize(steps, counts);
}

const [command, ...args] = process.argv.slice(2);
if (command === "demo") process.exitCode = await demo(args);
else if (command === "test") process.exitCode = await test(args);
else {
  console.error(usage);
  process.exitCode = 2;
}
