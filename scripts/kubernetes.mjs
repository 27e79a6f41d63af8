// `pnpm kubernetes`: records anew what comes from kube-proxy, and reports what differs from the recordings that are
// here. Plain JavaScript without dependencies, as the other scripts; the recording itself is lab/src/record-main.ts.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { root, runStep, tool } from "./steps.mjs";

const USAGE = `Usage: pnpm kubernetes [VERSION] [--write]

Builds kube-proxy of a release of Kubernetes and records anew what Fairlead has of it: its rules in iptables, nftables and
ipvs mode for each recorded scenario, its metrics, flags, defaults, how it reads configuration, its feature gates, and the
messages of protobuf. Reports each recording that differs from the one that is here. Needs root, Go, curl, iptables and
nft; for ipvs mode User-Mode Linux (without it those recordings stay as they are, and a line says so). The first build
of a release takes minutes.

  VERSION  v1.37.2; v1.37: the newest patch release that the Go module proxy serves; absent: that of the release that
           versions.json names. A pre-release (v1.38.0-beta.0) shows early what the next release brings
  --write  keeps the new recordings, names the release in versions.json, and runs the pure tests: those that fail show
           where Fairlead does not follow yet

Exit code 0: nothing differs, or all pure tests pass with what was kept; 1: something differs or fails.`;

const VERSIONS = join(root, "versions.json");

const args = process.argv.slice(2);
const [asked = "", ...more] = args.filter((arg) => !arg.startsWith("-"));
const unknown = [...args.filter((arg) => arg.startsWith("-") && arg !== "--write" && arg !== "--help"), ...more];
if (args.includes("--help")) {
  console.log(USAGE);
} else if (unknown.length > 0 || !/^(?:|v1\.\d+(?:\.\d+(?:-(?:alpha|beta|rc)\.\d+)?)?)$/.test(asked)) {
  console.error(`${unknown[0] ?? asked}: must be a release such as v1.37.2 or v1.37, and --write\n\n${USAGE}`);
  process.exitCode = 2;
} else {
  process.exitCode = await follow(asked, args.includes("--write"));
}

async function follow(wanted, write) {
  const followed = JSON.parse(readFileSync(VERSIONS, "utf8")).kubeProxy;
  const version = newestOf(wanted === "" ? minorOf(followed) : wanted);
  const out = mkdtempSync(join(tmpdir(), "fairlead-kubernetes-"));
  try {
    const flags = ["--conditions=@fairlead/source", "--disable-warning=ExperimentalWarning"];
    const record = tool("node", ...flags, join(root, "lab/src/record-main.ts"), version, out);
    const proto = [process.execPath, join(root, "scripts/kubernetes-proto.mjs"), version.replace("v1.", "v0."), out];
    if (!(await runStep(record)) || !(await runStep(proto))) return 1;
    const differing = filesBelow(out).filter((file) => !isSame(textOf(join(out, file)), textOf(join(root, file))));
    for (const file of differing) showDifference(file, out);
    const all = filesBelow(out).length;
    console.log(`\n${version} compared with ${followed}: ${all} recordings, ${differing.length} differ`);
    if (!write) return differing.length === 0 ? 0 : 1;
    for (const file of differing) keep(file, textOf(join(out, file)));
    writeVersions(version);
    return (await runStep(tool("vitest", "run", "--project", "pure"))) ? 0 : 1;
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
}

/** `v1.37` of `v1.37.2` */
function minorOf(version) {
  return /^v1\.\d+/.exec(version)[0];
}

/** A full version as it is; of a minor one the newest patch release that the Go module proxy serves. */
function newestOf(version) {
  if (version !== minorOf(version)) return version;
  const served = execFileSync("go", ["list", "-m", "-versions", "k8s.io/kubernetes"], {
    cwd: tmpdir(),
    encoding: "utf8",
  });
  const patches = served.split(/\s+/).flatMap((one) => {
    const [, minor, patch] = /^(v1\.\d+)\.(\d+)$/.exec(one) ?? [];
    return minor === version ? [Number(patch)] : [];
  });
  if (patches.length === 0) throw new Error(`${version}: the Go module proxy serves no release of it`);
  return `${version}.${Math.max(...patches)}`;
}

function filesBelow(folder) {
  const files = readdirSync(folder, { recursive: true }).filter((file) => statSync(join(folder, file)).isFile());
  return files.map((file) => relative(".", file)).sort();
}

/**
 * kube-proxy walks its services in the order of chance, and nft lists elements by their hash: what is in another order
 * is the same.
 */
function isSame(one, other) {
  const words = (text) =>
    text
      ?.split(/[\n,{}]/)
      .map((word) => word.trim())
      .filter((word) => word !== "")
      .sort()
      .join("\n");
  return words(one) === words(other);
}

/** Large recordings are gzipped here. */
function textOf(path) {
  if (existsSync(path)) return readFileSync(path, "utf8");
  return existsSync(`${path}.gz`) ? gunzipSync(readFileSync(`${path}.gz`)).toString("utf8") : undefined;
}

function keep(file, text) {
  const path = join(root, file);
  if (existsSync(`${path}.gz`)) writeFileSync(`${path}.gz`, gzipSync(text));
  else writeFileSync(path, text);
}

/** As `git diff` shows it; a recording that was not here is only named. */
function showDifference(file, out) {
  const before = textOf(join(root, file));
  console.log(`\n${file}${before === undefined ? ": new" : ""}`);
  if (before === undefined) return;
  const old = join(out, ".before");
  writeFileSync(old, before);
  const { stdout } = spawnSync("git", ["diff", "--no-index", "-U1", old, join(out, file)], { encoding: "utf8" });
  rmSync(old);
  console.log(stdout.split("\n").slice(4).join("\n"));
}

function writeVersions(version) {
  const versions = JSON.parse(readFileSync(VERSIONS, "utf8"));
  versions.kubeProxy = version;
  versions.releases[minorOf(version)] = version;
  writeFileSync(VERSIONS, `${JSON.stringify(versions, null, 2)}\n`);
}
