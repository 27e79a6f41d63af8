/** Set in the environment: agents run as the manifests of deploy/ have them. */
const { FAIRLEAD_HARDENED = "" } = process.env;

/**
 * First what the overlay's init container does, with all rights; then a root and kernel settings that are read-only,
 * all but the state folder, and NET_ADMIN and NET_RAW only. The process stays the same one.
 */
const SCRIPT = `set -eu
state=$1
shift
mkdir -p "$state"
"$@" --init-only
mount --make-rprivate /
mount --bind "$state" "$state"
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys
mount -o remount,bind,ro /
if (: >/etc/fairlead-wrote-this) 2>/dev/null; then echo "the root is not read-only" >&2; exit 1; fi
exec setpriv --pdeathsig KILL --no-new-privs --bounding-set=-all,+net_admin,+net_raw --inh-caps=-all "$@"
`;

const STATE_DIR = "--state-dir=";

/** What is put before the agent with these flags: nothing, unless FAIRLEAD_HARDENED is set. */
export function hardening(flags: readonly string[]): readonly string[] {
  if (FAIRLEAD_HARDENED === "" || flags.includes("--cleanup")) return [];
  const state = flags.find((flag) => flag.startsWith(STATE_DIR))?.slice(STATE_DIR.length);
  if (state === undefined) throw new Error("a hardened agent needs --state-dir: it may write nowhere else");
  return ["unshare", "--mount", "--", "sh", "-c", SCRIPT, "sh", state];
}
