// `pnpm stress`: runs tests again and again on a busy machine and lists what ever failed. Plain JavaScript without
// dependencies, as the other scripts.
import { spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { filesOf } from "./affected.mjs";
import { ended, root, sayStep, start, tool } from "./steps.mjs";

/** Kinds of test files (tooling/vitest.ts). */
const VITEST = ["kernel", "program", "browser"];
/** Tests that a cluster runs: specs, and test files that need its API server. */
const GROUND = ["apiserver", "e2e"];
const KINDS = [...VITEST, ...GROUND];

const USAGE = `Usage: pnpm stress [PATTERN] [--kind KINDS] [--runs 20] [--loops 16] [--bail]

Runs tests again and again while busy loops take the processors, and lists every test that ever failed: how often, in which
runs, the seeds, and where the output of these runs is.

  PATTERN   part of a test file's path or of a spec's name, such as packages/kernel or hairpin; default: all tests
  --kind    ${KINDS.join(", ")}, with commas between them; default: all
  --runs    how often; default 20
  --loops   busy loops alongside, none of them nicer than the tests; default 16
  --bail    ends after the first run in which a test failed
  --output  folder for the output of failed runs; default: .vitest/stress/TIME
  --config  another configuration of vitest; it has a project for each kind

Exit codes: 0 every run passed, 1 a test failed, 2 wrong usage. Ctrl-C ends everything and lists what failed until then.`;

/** The specs that run test files of the kind apiserver, by the folder of these files. */
const API_SERVER_SPECS = {
  "apps/agent/": "agent: its tests against the real API server",
  "apps/cli/": "fairlead: its tests against the real API server",
  "packages/watch/": "watch: its tests against the real API server",
};
/** Suites whose specs a pattern may name: those that clusters of namespaces carry, except the ones that last hours. */
const SUITES = ["services", "multi-cni", "faults", "networks", "attacks", "swap"];

/** It chooses what random tests do, where it is set. */
const { FAIRLEAD_TRACE_SEED } = process.env;
const SET_SEEDS = FAIRLEAD_TRACE_SEED === undefined ? [] : [`FAIRLEAD_TRACE_SEED=${FAIRLEAD_TRACE_SEED}`];

const MOST_SEED = 2 ** 31 - 1;
/** How the test ground ends where nothing matches, and where the machine lacks something. */
const NOTHING_MATCHES = 2;
const CANNOT_RUN = 3;

/**
 * @param {readonly string[]} args
 * @throws Error that says what is wrong
 */
export function readOptions(args) {
  const text = (value) => ({ type: "string", default: value });
  const { values, positionals } = parseArgs({
    args: args.filter((arg) => arg !== "--"),
    allowPositionals: true,
    options: {
      help: { type: "boolean", short: "h", default: false },
      bail: { type: "boolean", default: false },
      kind: text(KINDS.join()),
      runs: text("20"),
      loops: text("16"),
      output: { type: "string" },
      config: { type: "string" },
    },
  });
  const [pattern, ...more] = positionals;
  if (more.length > 0) throw new Error(`${more[0]}: give one PATTERN`);
  const kinds = values.kind.split(",");
  const unknown = kinds.find((kind) => !KINDS.includes(kind));
  if (unknown !== undefined) throw new Error(`--kind ${unknown}: give some of ${KINDS.join(", ")}`);
  const number = (name, least) => {
    const value = Number(values[name]);
    if (Number.isInteger(value) && value >= least) return value;
    throw new Error(`--${name} ${values[name]}: give a whole number, at least ${least}`);
  };
  return { ...values, pattern, kinds, runs: number("runs", 1), loops: number("loops", 0) };
}

/**
 * What failed in a run of vitest.
 *
 * @param {string | undefined} report of its JSON reporter; undefined: it left none
 * @param {number | undefined} code with which it ended
 * @returns {readonly {name: string, file: string, message: string}[]}
 */
export function failuresOfVitest(report, code) {
  if (report === undefined) return [{ name: "(the whole run)", file: "", message: `vitest ended with ${code}` }];
  const failures = JSON.parse(report).testResults.flatMap(({ name, status, message, assertionResults }) => {
    const file = relative(root, name);
    const tests = assertionResults.filter((test) => test.status === "failed");
    // A suite's hook, or the file outside of its tests.
    if (status === "failed" && tests.length === 0) return [{ name: "(outside of its tests)", file, message }];
    return tests.map(({ fullName, failureMessages }) => ({
      name: fullName,
      file,
      message: failureMessages.join("\n"),
    }));
  });
  if (failures.length > 0 || code === 0) return failures;
  return [{ name: "(an error outside of all tests)", file: "", message: "" }];
}

/** What failed in a run of the test ground, from its JUnit file; the same as of vitest. */
export function failuresOfGround(report, code) {
  const cases = (report ?? "").matchAll(
    /<testcase classname="([^"]*)" name="([^"]*)"[^>]*><failure message="([^"]*)"/g,
  );
  const failures = Array.from(cases, ([, file, name, message]) => ({
    name: unescapeXml(name),
    file: unescapeXml(file),
    message: unescapeXml(message),
  }));
  if (failures.length > 0 || code === 0) return failures;
  return [{ name: "(the whole run)", file: "e2e", message: `it ended with ${code}` }];
}

function unescapeXml(text) {
  const entities = { amp: "&", lt: "<", gt: ">", quot: '"' };
  return text.replace(/&(amp|lt|gt|quot);/g, (_, name) => entities[name]);
}

/** The seeds that a failure's message names: fast-check's, and whatever else is called a seed. */
export function seedsIn(message) {
  return [...new Set(Array.from(message.matchAll(/\bseed[:=]? ?(-?\d+)/gi), ([, seed]) => `seed ${seed}`))];
}

/**
 * What is said at the end.
 *
 * @param {readonly {name: string, file: string, run: number, seeds: readonly string[], log: string}[]} failures
 * @param {number} runs that came to their end
 * @returns {readonly string[]} lines
 */
export function summary(failures, runs) {
  const tests = new Map();
  for (const failure of failures) {
    const key = `${failure.file} > ${failure.name}`;
    tests.set(key, [...(tests.get(key) ?? []), failure]);
  }
  const byCount = [...tests].sort(([, one], [, other]) => other.length - one.length);
  const times = (count) => `${count} ${count === 1 ? "run" : "runs"}`;
  return [
    `${times(runs)}, ${tests.size === 0 ? "no test failed" : `${tests.size} ${tests.size === 1 ? "test" : "tests"} failed`}`,
    ...byCount.flatMap(([key, all]) => [
      "",
      `${key}: failed in ${times(new Set(all.map(({ run }) => run)).size)}`,
      ...all.map(({ run, seeds, log }) => `  run ${run}: ${[...seeds, log].join("; ")}`),
    ]),
  ];
}

/**
 * What is run each time: name, argument array and folder, by a file for the report and the seed of vitest's order.
 */
function commandsOf({ kinds, pattern, config }) {
  const files = kinds.filter((kind) => VITEST.includes(kind));
  const commands = [];
  if (files.length > 0) {
    const options = [
      ...files.map((kind) => `--project=${kind}`),
      ...(config === undefined ? [] : [`--config=${config}`]),
    ];
    commands.push({
      name: "tests",
      argv: (report, seed) =>
        tool(
          "vitest",
          ...["run", ...options, "--passWithNoTests", `--sequence.seed=${seed}`],
          ...["--reporter=default", "--reporter=json", `--outputFile.json=${report}`],
          ...(pattern === undefined ? [] : [pattern]),
        ),
      failures: failuresOfVitest,
    });
  }
  const specs = specsOf(kinds, pattern);
  if (specs === undefined) return commands;
  const [node] = tool("node");
  const suites = pattern === undefined ? [] : ["--suite", SUITES.join()];
  const ground = [node, "--conditions=@fairlead/source", "--no-warnings", "src/command/main.ts", ...suites, ...specs];
  commands.push({
    name: "specs",
    argv: (report) => [...ground, "--junit", report],
    cwd: join(root, "e2e"),
    failures: failuresOfGround,
  });
  return commands;
}

/** The test ground's options; undefined: none of its specs is asked for. */
function specsOf(kinds, pattern) {
  if (kinds.includes("e2e") && pattern === undefined) return [];
  const patterns = kinds.includes("e2e") ? [pattern.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")] : [];
  if (kinds.includes("apiserver")) {
    const tests = filesOf("*.apiserver.test.ts").filter((file) => pattern === undefined || file.includes(pattern));
    const specs = Object.entries(API_SERVER_SPECS).filter(([folder]) => tests.some((file) => file.startsWith(folder)));
    patterns.push(...specs.map(([, spec]) => spec));
  }
  return patterns.length === 0 ? undefined : ["--spec", patterns.join("|")];
}

async function stress(options) {
  const { runs, bail, output } = options;
  const time = new Date().toISOString().replace(/\..*/, "").replaceAll(":", "-");
  const folder = resolve(output ?? join(root, ".vitest", "stress", time));
  mkdirSync(folder, { recursive: true });
  const failures = [];
  let done = 0;
  // Ctrl-C ends this process by way of scripts/steps.mjs.
  process.once("exit", () => console.log(`\n${summary(failures, done).join("\n")}`));
  const loops = busyLoops(options.loops);
  let commands = commandsOf(options);
  for (let run = 1; run <= runs && !(bail && failures.length > 0) && commands.length > 0; run++) {
    sayStep(`run ${run} of ${runs}`);
    const useful = [];
    for (const command of commands) {
      const result = await once(command, join(folder, `run-${run}-${command.name}`), run);
      failures.push(...result.failures);
      for (const { file, name } of result.failures) console.log(`failed: ${file} > ${name}`);
      if (!result.useless) useful.push(command);
    }
    commands = useful;
    if (commands.length > 0) done = run;
  }
  await loops.end();
  if (failures.length === 0) rmSync(folder, { recursive: true, force: true });
  if (done === 0) return 2;
  return failures.length > 0 ? 1 : 0;
}

/** One run of one command; its output is kept if a test failed. */
async function once({ name, argv, cwd, failures }, path, run) {
  const [log, report] = [`${path}.log`, `${path}.report`];
  const seed = randomInt(MOST_SEED);
  const file = openSync(log, "w");
  const code = await ended(start(argv(report, seed), file, { cwd })).finally(() => closeSync(file));
  if (name === "specs" && (code === NOTHING_MATCHES || code === CANNOT_RUN)) {
    console.log(`specs do not run: ${readFileSync(log, "utf8").trim()}`);
    return { failures: [], useless: true };
  }
  const text = existsSync(report) ? readFileSync(report, "utf8") : undefined;
  const found = failures(text, code);
  if (found.length === 0) for (const kept of [log, report]) rmSync(kept, { force: true });
  const order = name === "tests" ? [`--sequence.seed=${seed}`] : [];
  const kept = relative(root, log);
  const useless = found.length === 0 && name === "tests" && JSON.parse(text ?? "{}").numTotalTests === 0;
  if (useless) console.log("no test file's path matches");
  return {
    failures: found.map(({ message, ...test }) => ({
      ...test,
      run,
      seeds: [...order, ...SET_SEEDS, ...seedsIn(message)],
      log: kept,
    })),
    useless,
  };
}

/** Threads that fill the processors until `end` is called, or this process ends in whatever way. */
function busyLoops(count) {
  const file = fileURLToPath(new URL("busy-loops.mjs", import.meta.url));
  const child = spawn(process.execPath, [file, String(count)], { stdio: ["pipe", "ignore", "inherit"] });
  child.stdin.on("error", () => {});
  return {
    end: () => {
      const closed = new Promise((resolve) => child.once("close", resolve));
      child.stdin.end();
      return closed;
    },
  };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  try {
    const options = readOptions(process.argv.slice(2));
    if (options.help) console.log(USAGE);
    else process.exitCode = await stress(options);
  } catch (error) {
    console.error(`${error.message}\n\n${USAGE}`);
    process.exitCode = 2;
  }
}
