/** The kernel's time when its `-m recent` lists were read. */
export interface KernelTime {
  /** As /proc/timer_list prints them; 64 bits, of which lists have the lower 32 or all. */
  readonly jiffies: number;
  /** Of a second; see `ticksPerSecond`. */
  readonly perSecond: number;
}

const CONFIGURABLE = [100, 250, 300, 1000] as const;

/**
 * How many jiffies this kernel has in a second: they begin at minus five minutes (INITIAL_JIFFIES), in 32 bits.
 *
 * @param uptime seconds since the start, of /proc/uptime
 */
export function ticksPerSecond(jiffies: number, uptime: number): number {
  const off = (perSecond: number) => Math.abs((jiffies - (2 ** 32 - 300 * perSecond)) / perSecond - uptime);
  return CONFIGURABLE.reduce((best, next) => (off(next) < off(best) ? next : best));
}

const LINE = /^src=(\S+) ttl: \d+ last_seen: \d+ oldest_pkt: \d+ ([\d, ]+)$/;

/**
 * A list as /proc/net/xt_recent/NAME shows it: address → seconds since each time it was seen there.
 */
export function parseRecentList(
  text: string,
  { jiffies, perSecond }: KernelTime,
): ReadonlyMap<string, readonly number[]> {
  const entries = text.split("\n").flatMap((line) => {
    const [, address = "", stamps = ""] = LINE.exec(line) ?? [];
    if (address === "") return [];
    const ages = stamps.split(",").map((stamp) => Math.max(0, (jiffies - Number(stamp)) / perSecond));
    return [[address, ages] as const];
  });
  return new Map(entries);
}
