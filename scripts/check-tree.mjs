// `pnpm lint:tree`: what no linter looks for, and the budget (`--write-budget` lowers it to what is there). Plain JavaScript without dependencies, as the other scripts.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { lowered, measure, overBudget } from "./budget.mjs";
import { smallFiles } from "./small-files.mjs";
import { replacedWords } from "./words.mjs";

const LONGEST_COMMENT = 120;

/** What profilers, crashes and heap snapshots leave; .gitignore has them as well. */
const LEFTOVER =
  /(?:v8\.log|\.cpuprofile|\.heapprofile|\.heapsnapshot|(?:^|\/)core\.\d+|(?:^|\/)report\.[\d.]+\.json)$/;

/** A mode is one value: what depends on it stands in a folder `modes`. */
const MODE = /\bmode [!=]== "(?:iptables|ipvs|nftables|userspace|kernelspace)"/;
const MODES_ROOM = /^(?:(?:packages|apps)\/[^/]+|lab|e2e|bench)\/src\/(?!(?:.*\/)?modes\/)/;

/** What backends need to know of Kubernetes, the plan says: reach, at, gate, treatments. */
const KIND = /\b(?:kind [!=]==|case) "(?:cluster-ip|node-port|external-ip|load-balancer)"|\bpolicy [!=]==/;
const BACKENDS = /^packages\/backend-[^/]+\/src\//;

/** Plain data at a module's top has a name in capitals. Only what stands on one line is looked at. */
const CONSTANT = /^(?:export )?const [a-z]\w* = (?:-?[\d_.]+|"[^"]*"|\/.+\/[a-z]*);$/;

/** US spelling, in code as well: names, comments, messages. Fixtures are others' text. */
const WRITTEN = /\.(?:[cm]?[jt]sx?|md|ya?ml|tpl|sh|c)$/;
const OTHERS_SPELLING = /(?:^|\/)(?:fixtures\/|CHANGELOG\.md$)|^(?:CONTRIBUTING\.md|scripts\/check-tree\.mjs)$/;
const BRITISH =
  /\w*(?:(?:behavi|col|fav|flav|hon|lab|neighb)our|(?:cance|labe|mode|signa|trave)ll(?:ed|ing)|(?:initial|minim|normal|optim|organ|recogn|serial|summar|synchron)is(?:e|ing|ation)|artefact|catalogue|defence|learnt|licence|misspelt|towards\b|\bgrey\b)\w*/i;

/**
 * A test is no clock: tooling/vitest.ts has the one limit of all tests, the end of a hang. A process that a test starts
 * has none of its own (`timeoutMs: 0`), it ends with the test.
 */
const TEST = /\.(?:test|tools)\.tsx?$|^e2e\/test\/kernel\//;
const LIMITS = [
  /\btimeout: [\w.]+,?\s*\},\s*(?:async )?\(/g,
  /^\s*\}, (?:[\d_]+|[A-Z_]*MS)\);$/gm,
  /\bpoll\([^;]*?\btimeout:|\bvi\.wait(?:For|Until)\(/g,
  /\bexpect\((?:performance|Date)\.now\(\)|\bAbortSignal\.timeout\(/g,
  /\b(?:run|stream)\([^;]*?\btimeoutMs: [1-9]/g,
];
/** Those that may take longer than all others, and the tests of the limit itself. */
const OTHER_LIMITS = ["apps/cli/test/pods.test.ts", "e2e/test/ipvs.uml.test.ts", "packages/kernel/test/runner.test.ts"];

/** A cluster that tests of a real API server get may be served by Fairlead: its objects have these names. */
const SHIPPED_NAME = /"(?:fairlead|kube-proxy|kube-system)"/;

const COMMENT = /^\s*(?:\/\/|\/?\*)/;

// What is deleted and not yet committed is listed all the same.
const files = execFileSync("git", ["ls-files"], { encoding: "utf8" }).trim().split("\n").filter(existsSync);
const read = (file) => readFileSync(file, "utf8");
const texts = new Map(files.filter((file) => /\.tsx?$/.test(file)).map((file) => [file, read(file)]));
const budget = JSON.parse(read("budget.json"));
const measured = measure(files, read);
if (process.argv.includes("--write-budget")) {
  writeFileSync("budget.json", `${JSON.stringify(lowered(budget, measured), null, 2)}\n`);
}

const found = [
  ...overBudget(budget, measured),
  ...smallFiles(texts),
  ...files.filter((file) => LEFTOVER.test(file)).map((file) => `${file}: a tool left it; remove it`),
  ...files.filter((file) => /\.tsx?$/.test(file)).flatMap(inSource),
  ...files.filter((file) => TEST.test(file) && !OTHER_LIMITS.includes(file)).flatMap(inTest),
  ...files.filter((file) => WRITTEN.test(file)).flatMap((file) => replacedWords(file, read(file))),
  ...files.filter((file) => WRITTEN.test(file) && !OTHERS_SPELLING.test(file)).flatMap(inWriting),
];

function inSource(file) {
  return readFileSync(file, "utf8")
    .split("\n")
    .flatMap((line, at) => {
      const place = `${file}:${at + 1}`;
      if (COMMENT.test(line) && line.length > LONGEST_COMMENT) {
        return [`${place}: a comment of ${line.length} columns; wrap it at ${LONGEST_COMMENT}`];
      }
      if (file.endsWith(".apiserver.test.ts") && SHIPPED_NAME.test(line)) {
        return [`${place}: a name of what is installed; give the test's objects names of their own`];
      }
      if (CONSTANT.test(line)) return [`${place}: a constant; write its name in capitals`];
      if (BACKENDS.test(file) && KIND.test(line)) {
        return [`${place}: asks for a kind or policy of Kubernetes; ask for reach, at, gate or the treatments`];
      }
      return MODES_ROOM.test(file) && MODE.test(line) ? [`${place}: compares the mode outside of modes/`] : [];
    });
}

function inTest(file) {
  const text = readFileSync(file, "utf8");
  return LIMITS.flatMap((limit) =>
    Array.from(text.matchAll(limit), ({ 0: found, index }) => {
      const line = text.slice(0, index + found.length).split("\n").length;
      return `${file}:${line}: a limit or a clock of the test's own; leave it to tooling/vitest.ts`;
    }),
  );
}

function inWriting(file) {
  return readFileSync(file, "utf8")
    .split("\n")
    .flatMap((line, at) => {
      const word = BRITISH.exec(line)?.[0];
      return word === undefined ? [] : [`${file}:${at + 1}: "${word}": use US spelling`];
    });
}

for (const line of found) console.error(line);
process.exitCode = found.length === 0 ? 0 : 1;
