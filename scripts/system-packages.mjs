import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { installIdle } from "./idle-services.mjs";

/** Debian packages by the tests that need them, each with a program of it; a package without its program is missing. */
const PACKAGES = {
  kernel: {
    iptables: "iptables",
    nftables: "nft",
    iproute2: "ip",
    ipset: "ipset",
    conntrack: "conntrack",
    nfacct: "nfacct",
  },
  ipvs: { ipvsadm: "ipvsadm", "user-mode-linux": "linux.uml", kmod: "modprobe", gcc: "gcc" },
  cost: {
    "qemu-system-x86": "qemu-system-x86_64",
    "busybox-static": "busybox",
    cpio: "cpio",
    "xz-utils": "xz",
    kmod: "modprobe",
    gcc: "gcc",
  },
  // The first one is a file that is found from any folder of programs.
  windows: { wine64: "../lib/wine/wine64", wine: "wine", "gcc-mingw-w64-x86-64": "x86_64-w64-mingw32-gcc" },
  programs: { zsh: "zsh", fish: "fish", jq: "jq", curl: "curl" },
  browser: { "chromium-headless-shell": "chromium-headless-shell" },
  specs: {
    bird2: "bird",
    "openvswitch-switch": "ovs-vswitchd",
    "ovn-central": "ovn-northd",
    "ovn-host": "ovn-controller",
    ethtool: "ethtool",
    "dnsmasq-base": "dnsmasq",
  },
  release: {
    mmdebstrap: "mmdebstrap",
    // Not a program, but a file that is found from any folder of programs.
    "debian-archive-keyring": "../share/keyrings/debian-archive-keyring.gpg",
    skopeo: "skopeo",
    "docker-registry": "docker-registry",
  },
};

/** The packages of each group. */
export const GROUPS = Object.fromEntries(
  Object.entries(PACKAGES).map(([group, packages]) => [group, Object.keys(packages)]),
);

const programs = Object.assign({}, ...Object.values(PACKAGES));

const folders = ["/usr/sbin", "/sbin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/local/bin"];

function isThere(program) {
  return folders.some((folder) => existsSync(`${folder}/${program}`));
}

/** Whether Kubernetes' control plane can be had here (docs/testing.md), and so the specs can run. */
export function canHaveControlPlane() {
  const path = (process.env.PATH ?? "").split(":");
  return Boolean(process.env.KUBEBUILDER_ASSETS) || [...path, ...folders].some((folder) => existsSync(`${folder}/go`));
}

/**
 * Installs the Debian packages whose programs are missing. Only root can; other users get the command, and the
 * steps that follow say what they leave out without them.
 */
export function ensurePackages(packages) {
  const missing = packages.filter((name) => !isThere(programs[name]));
  if (missing.length === 0) return;
  const command = `apt-get install -y --no-install-recommends ${missing.join(" ")}`;
  if (process.getuid?.() !== 0 || !isThere("apt-get")) {
    console.log(`missing: ${missing.join(", ")} (install with: sudo ${command})`);
    return;
  }
  console.log(`installing ${missing.join(", ")}`);
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const quiet = { stdio: ["ignore", "ignore", "inherit"], env };
  spawnSync("apt-get", ["update", "-q"], quiet);
  if (!installIdle(missing, command.split(" "), env)) console.log(`could not install ${missing.join(", ")}`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const groups = process.argv.slice(2);
  if (groups.length > 0 && groups.every((group) => Object.hasOwn(GROUPS, group))) {
    ensurePackages(groups.flatMap((group) => GROUPS[group]));
  } else {
    console.error(`Usage: node scripts/system-packages.mjs GROUP…\n\nGroups: ${Object.keys(GROUPS).join(", ")}`);
    process.exitCode = 2;
  }
}
