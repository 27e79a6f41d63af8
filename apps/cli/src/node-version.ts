/** As `engines` of package.json says; what is missing in older ones ends in unhelpful words. */
const OLDEST = [22, 19] as const;

/** Why this Node cannot run the program; undefined: it can. */
export function tooOld(version: string): string | undefined {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const isOld = major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1]);
  return isOld ? `fairlead needs Node ${OLDEST.join(".")} or newer, this is ${version}\n` : undefined;
}
