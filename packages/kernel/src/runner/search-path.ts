/** Where the network tools live; plain users' PATH often lacks them. */
const SYSTEM_FOLDERS = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/** PATH for child processes: this process's own, and the system folders behind it. */
export function searchPath(): string {
  const { PATH = "/usr/bin:/bin" } = process.env;
  const folders = PATH.split(":");
  return [...folders, ...SYSTEM_FOLDERS.filter((folder) => !folders.includes(folder))].join(":");
}
