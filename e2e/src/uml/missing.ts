import { delimiter, join } from "node:path";
import { isThere } from "../support/is-there.ts";
import { MODULES_FOLDER } from "./init-script.ts";

/** What has to be there, and the Debian package that brings it. */
const programs: readonly (readonly [program: string, debianPackage: string])[] = [
  ["linux.uml", "user-mode-linux"],
  ["gcc", "gcc"],
  ["modprobe", "kmod"],
  ["iptables-legacy", "iptables"],
  ["ip", "iproute2"],
  ["ipset", "ipset"],
  ["ipvsadm", "ipvsadm"],
  ["conntrack", "conntrack"],
];

const folders = ["/usr/local/sbin", "/usr/sbin", "/sbin", ...(process.env["PATH"] ?? "").split(delimiter)];

/** Why User-Mode Linux cannot run here, undefined where it can. Starts nothing. */
export async function missingForUml(): Promise<string | undefined> {
  if (process.arch !== "x64") return `User-Mode Linux runs on x86-64 alone, this machine is ${process.arch}`;
  const found = await Promise.all(
    programs.map(async ([program]) => ({ program, there: await isProgramThere(program) })),
  );
  const absent = programs.filter(([program]) => found.some((entry) => entry.program === program && !entry.there));
  const modulesThere = await isThere(MODULES_FOLDER);
  if (absent.length === 0 && modulesThere) return undefined;
  const packages = absent.length > 0 ? absent.map(([, name]) => name) : ["user-mode-linux"];
  return `User-Mode Linux needs ${packages.join(", ")}: apt-get install -y --no-install-recommends ${packages.join(" ")}`;
}

async function isProgramThere(program: string): Promise<boolean> {
  const there = await Promise.all(folders.map((folder) => isThere(join(folder, program))));
  return there.includes(true);
}
