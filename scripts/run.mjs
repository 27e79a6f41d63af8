// `npm run demo` and `npm test` on a bare machine: Node 20 and npm are all there is, so this file is plain JavaScript
// without dependencies. It brings pnpm (which brings Node 24), installs, and runs the steps of the command.
import { readFileSync } from "node:fs";
import { buildAgent } from "./build-agent.mjs";
import { prepareSpecs, specs } from "./specs.mjs";
import { pnpm, runBeside, runStep, sayStep } from "./steps.mjs";
import { summarise } from "./summary.mjs";
import { canHaveControlPlane, ensurePackages } from "./system-packages.mjs";

const usage = `Usage: npm run demo [-- --keep] [-- --mode nftables]
       npm test`;

/** Debian packages of tests: on a real kernel, on one that has IPVS, of completion, in a browser, with real pod networks. */
const packages = {
  kernel: ["iptables", "iproute2", "conntrack", "nfacct"],
  ipvs: ["ipset", "ipvsadm", "user-mode-linux", "kmod", "gcc"],
  shells: ["zsh", "fish"],
  browser: ["chromium"],
  specs: ["bird2", "openvswitch-switch", "ovn-central", "ovn-host", "ethtool", "dnsmasq-base"],
};

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

const turboTest = ["--concurrency=2", "--continue", "--output-logs=new-only"];

/** One after the other, each with both cores if it can use them. The first builds what others run. */
const checks = {
  build: ["run", "build", "--output-logs=errors-only"],
  lint: ["run", "lint"],
  "package lint": ["run", "lint:packages", "--output-logs=errors-only"],
  typecheck: ["run", "typecheck", "--output-logs=errors-only"],
  tests: ["exec", "turbo", "run", "test", "--filter=!@fairlead/e2e", ...turboTest],
  // Not beside other packages' tests: faults are timed.
  "kernel tests": ["exec", "turbo", "run", "test:machine", ...turboTest],
};

/**
 * Ten minutes of one core, so they begin as soon as the build is done (the guests run the tool) and fill what other checks
 * leave idle. Nothing in the guests is timed.
 */
const ipvsTests = ["exec", "turbo", "run", "test:uml", "--output-logs=new-only"];

/** Each check counts as one test in the closing line, so that nothing that failed hides behind a green count. */
async function test(args) {
  const { kernel, ipvs, shells, browser, specs: clusters } = packages;
  ensurePackages([...kernel, ...ipvs, ...shells, ...browser, ...(canHaveControlPlane() ? clusters : [])]);
  if (!(await install())) return summarise({ install: false });
  const wanted = (name) => args.length === 0 || args.includes(name);
  const prepared = wanted("e2e") && canHaveControlPlane() ? prepareSpecs(manifest.packageManager) : undefined;
  const results = {};
  const check = async ([name, command]) => {
    if (!wanted(name)) return;
    sayStep(name);
    results[name] = await runStep(pnpm(manifest.packageManager, command));
  };
  const [build, ...others] = Object.entries(checks);
  await check(build);
  const beside = wanted("ipvs tests") ? runBeside("ipvs tests", pnpm(manifest.packageManager, ipvsTests)) : undefined;
  for (const other of others) await check(other);
  await prepared;
  if (wanted("e2e")) results.e2e = await specs(manifest.packageManager);
  if (beside !== undefined) results["ipvs tests"] = (await beside) === 0;
  return summarise(results);
}

const [command, ...args] = process.argv.slice(2);
if (command === "demo") process.exitCode = await demo(args);
else if (command === "test") process.exitCode = await test(args);
else {
  console.error(usage);
  process.exitCode = 2;
}
