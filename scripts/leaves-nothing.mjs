// `pnpm leaves-nothing`: kills a command at random moments and says what it leaves on the machine. Plain JavaScript without
// dependencies, as the other scripts.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

const USAGE = `Usage: pnpm leaves-nothing [--runs 20] [--signal KILL] [--seconds S] [--offline] [-- COMMAND…]

Runs COMMAND (default: npm run demo) to its end, and then again and again, each time until a random moment, when it is
killed. After each run nothing may be there that was not there before: processes, network interfaces and namespaces, rules
and settings of the kernel, mounts, files in /tmp, /dev/shm, /run, the home folder and the checkout.

  --runs     how many times it is killed; default 20
  --signal   KILL: only the first process, and in every second run the first script that it has started;
             INT, TERM: all processes of its group, as a terminal does; default KILL
  --seconds  the moments are between 0 and that many seconds, and the command does not run to its end first; default: as
             long as it takes
  --offline  in a network namespace and with a /run of its own: what other programs on the machine do there does not
             count, and COMMAND has to have all that it installs

It has a mount namespace of its own, with an empty /tmp and /dev/shm, so that other programs' files do not count. Exit
codes: 0 nothing is left, 1 something is, 2 wrong usage.`;

/** prctl(PR_SET_CHILD_SUBREAPER, 1): orphans of what runs here become children of this process and can be found. */
const KEEP_ORPHANS = "syscall($ARGV[0], 36, 1, 0, 0, 0) == 0 or die $!; exec @ARGV[1..$#ARGV] or die $!";
const PRCTL = { x64: "157", arm64: "167" };
const OWN_MOUNTS = "mount -t tmpfs tmpfs /tmp && mount -t tmpfs tmpfs /dev/shm";
const OWN_NETWORK = "mount -t tmpfs tmpfs /run && ip link set lo up";
/** The first argument of this program once it has mounts of its own. */
const INSIDE = "inside";

/** They change by themselves. */
const UNSTABLE = /^net\/(?:netfilter\/nf_conntrack_(?:count|buckets|max)|nf_conntrack_max)$/;

/** What builds and reports leave in the checkout for the next ones, and git ignores. */
const BUILT = /^!! (?:.*\/)?(?:dist|node_modules|\.turbo|\.vitest|\.e2e)\/$/;

/** pnpm's own, for all of its processes of a user: they stay as a cache does. */
const CACHES = /^\/tmp\/pnpm-[\w-]+-locks-/;

const LONGEST_COMMAND = 150;

/** What a killed command may take to be gone, on a busy machine. */
const PATIENCE_MS = 120_000;

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) process.exitCode = await main();

async function main() {
  const [first, ...rest] = process.argv.slice(2);
  const options = readOptions(first === INSIDE ? rest : process.argv.slice(2));
  if (options === undefined) return 2;
  if (options.help) {
    console.log(USAGE);
    return 0;
  }
  return first === INSIDE ? tryAll(options) : inOwnMounts(options);
}

function readOptions(args) {
  try {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        help: { type: "boolean", short: "h", default: false },
        runs: { type: "string", default: "20" },
        signal: { type: "string", default: "KILL" },
        seconds: { type: "string" },
        offline: { type: "boolean", default: false },
      },
    });
    const runs = Number(values.runs);
    const seconds = values.seconds === undefined ? undefined : Number(values.seconds);
    if (!(Number.isInteger(runs) && runs > 0)) throw new Error(`--runs ${values.runs}: give a whole number above 0`);
    if (seconds !== undefined && !(seconds > 0)) throw new Error(`--seconds ${values.seconds}: give a number above 0`);
    if (!["KILL", "INT", "TERM"].includes(values.signal))
      throw new Error(`--signal ${values.signal}: KILL, INT or TERM`);
    const command = positionals.length > 0 ? positionals : ["npm", "run", "demo"];
    return { help: values.help, offline: values.offline, runs, seconds, signal: `SIG${values.signal}`, command };
  } catch (error) {
    console.error(`${error.message}\n\n${USAGE}`);
    return undefined;
  }
}

/** This program again, as root of mounts of its own. */
function inOwnMounts({ offline }) {
  const asRoot = process.getuid?.() === 0 ? [] : ["--map-root-user"];
  const node = [process.execPath, fileURLToPath(import.meta.url), INSIDE, ...process.argv.slice(2)];
  const own = ["--mount", "--propagation", "private", ...(offline ? ["--net"] : [])];
  const script = `${OWN_MOUNTS}${offline ? ` && ${OWN_NETWORK}` : ""} && exec "$@"`;
  const argv = [...own, ...asRoot, "sh", "-c", script, "sh"];
  const { status } = spawnSync("unshare", [...argv, "perl", "-e", KEEP_ORPHANS, PRCTL[process.arch], ...node], {
    stdio: "inherit",
  });
  return status ?? 1;
}

async function tryAll({ runs, seconds, signal, command }) {
  // The command has its own.
  const { npm_lifecycle_event: _, TMPDIR: __, ...env } = process.env;
  console.log(command.join(" "));
  let failed = 0;
  let shortest = Number.POSITIVE_INFINITY;
  if (seconds === undefined) {
    const first = await tryOnce(command, env);
    report("to its end", first);
    failed = first.left.length > 0 ? 1 : 0;
    shortest = first.seconds;
  }
  for (let run = 1; run <= runs; run++) {
    const kill = {
      signal,
      after: Math.random() * (seconds ?? shortest),
      script: signal === "SIGKILL" && run % 2 === 0,
    };
    const one = await tryOnce(command, env, kill);
    if (one.seconds < kill.after) shortest = one.seconds;
    report(
      `${run}: ${signal} of ${kill.script ? "the script" : "the first process"} at ${kill.after.toFixed(2)} s`,
      one,
    );
    if (one.left.length > 0) failed++;
  }
  console.log(`\n${failed === 0 ? "nothing was left" : `${failed} runs left something`}`);
  return failed === 0 ? 0 : 1;
}

function report(name, { left, last, settled, seconds }) {
  const gone = `nothing left after ${settled.toFixed(1)} s${last.length > 0 ? `; last gone: ${last.at(0)}` : ""}`;
  console.log(`${name}: ran ${seconds.toFixed(1)} s, ${left.length > 0 ? "LEFT:" : gone}`);
  for (const line of left) console.log(`  ${line}`);
}

async function tryOnce([program, ...args], env, kill) {
  const before = stateOf();
  const started = performance.now();
  const child = spawn(program, args, { detached: true, stdio: "ignore", env });
  const closed = once(child, "close");
  if (kill !== undefined) {
    await Promise.race([closed, sleep(kill.after * 1000)]);
    if (child.exitCode === null) end(child.pid, kill);
  }
  await closed;
  const ended = performance.now();
  let last = [];
  let left = differences(before, stateOf());
  while (left.length > 0 && performance.now() - ended < PATIENCE_MS) {
    last = left;
    await sleep(100);
    left = differences(before, stateOf());
  }
  const settled = performance.now() - ended;
  for (const { id } of descendants(process.pid)) process.kill(id, "SIGKILL");
  return { left, last, seconds: (ended - started) / 1000, settled: settled / 1000 };
}

function end(first, { signal, script }) {
  if (signal !== "SIGKILL") process.kill(-first, signal);
  else if (script) {
    const found = descendants(first).find(({ command }) => / \S*scripts\/\w+\.mjs/.test(command));
    process.kill(found?.id ?? first, signal);
  } else process.kill(first, signal);
}

/** What is there that was not, and what is gone, a line each: `KIND: + LINE`. */
export function differences(before, after) {
  return Object.keys(after).flatMap((kind) => {
    const [were, are] = [new Set(before[kind]), new Set(after[kind])];
    return [
      ...[...are].filter((line) => !were.has(line)).map((line) => `${kind}: + ${line}`),
      ...[...were].filter((line) => !are.has(line)).map((line) => `${kind}: - ${line}`),
    ];
  });
}

/** Everything that a run may not change, by kind: lines. */
function stateOf() {
  return {
    processes: descendants(process.pid).map(({ id, command }) => `${id} ${command}`),
    interfaces: readdirSync("/sys/class/net"),
    "nft rules": output("nft", "list", "ruleset"),
    "iptables rules": [...output("iptables-save"), ...output("ip6tables-save")].filter((line) => !line.startsWith("#")),
    settings: ["/proc/sys/net", "/proc/sys/fs/inotify"].flatMap(settings),
    mounts: readFileSync("/proc/self/mountinfo", "utf8").split("\n"),
    files: ["/tmp", "/dev/shm", "/run"].flatMap(filesIn).filter((file) => !CACHES.test(file)),
    home: readdirSync(homedir()),
    checkout: output("git", "status", "--porcelain", "--untracked-files=all", "--ignored=matching").filter(
      (line) => !BUILT.test(line),
    ),
  };
}

function output(program, ...args) {
  try {
    const text = execFileSync(program, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
    return text.split("\n").map((line) => line.replace(/ \[\d+:\d+\]$/, ""));
  } catch {
    return [];
  }
}

function settings(folder) {
  return filesIn(folder).flatMap((file) => {
    const name = file.slice("/proc/sys/".length);
    if (UNSTABLE.test(name)) return [];
    try {
      return [`${name} ${readFileSync(file, "utf8").trim()}`];
    } catch {
      return [];
    }
  });
}

function filesIn(folder) {
  if (!existsSync(folder)) return [];
  try {
    return readdirSync(folder, { recursive: true }).map((name) => join(folder, String(name)));
  } catch {
    // Something was removed on the way.
    return [];
  }
}

/** All that have not ended, parents first. */
function descendants(id) {
  const children = readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "utf8");
      const [state, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      const command = readFileSync(`/proc/${name}/cmdline`, "utf8")
        .replaceAll(/[\0\s]+/g, " ")
        .slice(0, LONGEST_COMMAND);
      return state === "Z" ? [] : [{ id: Number(name), parent: Number(parent), command }];
    } catch {
      return [];
    }
  });
  const found = [];
  const ids = [id];
  for (const parent of ids) {
    for (const one of children.filter((child) => child.parent === parent)) {
      ids.push(one.id);
      found.push(one);
    }
  }
  return found;
}
