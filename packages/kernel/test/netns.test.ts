import { expect, test } from "vitest";
import { userNamespaceHint } from "../src/netns/namespace.ts";

test.each([
  [
    "Ubuntu 24.04",
    { "kernel/apparmor_restrict_unprivileged_userns": "1\n", "user/max_user_namespaces": "63704\n" },
    'AppArmor keeps plain users from user namespaces (Ubuntu 23.10 and newer): run this as root, or allow them with "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"',
  ],
  [
    "an older Debian",
    { "kernel/unprivileged_userns_clone": "0\n" },
    'the kernel keeps plain users from user namespaces: run this as root, or allow them with "sudo sysctl -w kernel.unprivileged_userns_clone=1"',
  ],
  [
    "none allowed",
    { "user/max_user_namespaces": "0\n" },
    'no user namespaces are allowed: run this as root, or allow them with "sudo sysctl -w user.max_user_namespaces=15000"',
  ],
  ["Debian 12", { "kernel/unprivileged_userns_clone": "1\n", "user/max_user_namespaces": "63704\n" }, undefined],
])("%s", (_name, settings: Readonly<Record<string, string>>, hint) => {
  expect(userNamespaceHint((name) => settings[name])).toBe(hint);
});
