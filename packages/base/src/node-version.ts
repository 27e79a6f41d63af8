/**
 * Why a version of Node cannot run a program: what an older one lacks ends in unhelpful words.
 *
 * @param oldest major and minor version that can
 * @param version `22.19.0`
 * @returns undefined: it can
 */
export function tooOld(
  program: string,
  [major, minor]: readonly [major: number, minor: number],
  version: string,
): string | undefined {
  const [thisMajor = 0, thisMinor = 0] = version.split(".").map(Number);
  const isOld = thisMajor < major || (thisMajor === major && thisMinor < minor);
  return isOld ? `${program} needs Node ${major}.${minor} or newer, this is ${version}` : undefined;
}
