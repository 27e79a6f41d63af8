import { readFileSync } from "node:fs";

/**
 * Settings that keep plain users from having user namespaces: the file below /proc/sys, its forbidding value, what to
 * say.
 */
const SETTINGS = [
  [
    "kernel/apparmor_restrict_unprivileged_userns",
    "1",
    "AppArmor keeps plain users from user namespaces (Ubuntu 23.10 and newer)",
    "0",
  ],
  ["kernel/unprivileged_userns_clone", "0", "the kernel keeps plain users from user namespaces", "1"],
  ["user/max_user_namespaces", "0", "no user namespaces are allowed", "15000"],
] as const;

/**
 * Why a plain user cannot have a user namespace here, and what helps; undefined where nothing forbids it.
 *
 * @param read text of a file below /proc/sys, undefined where there is none
 */
export function userNamespaceHint(read: (name: string) => string | undefined = readSetting): string | undefined {
  for (const [name, forbidding, why, allowing] of SETTINGS) {
    if (read(name)?.trim() !== forbidding) continue;
    const setting = name.replaceAll("/", ".");
    return `${why}: run this as root, or allow them with "sudo sysctl -w ${setting}=${allowing}"`;
  }
  return undefined;
}

function readSetting(name: string): string | undefined {
  try {
    return readFileSync(`/proc/sys/${name}`, "utf8");
  } catch {
    return undefined;
  }
}
